// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/host_tracks.h"

#include <gtest/gtest.h>

namespace lockstep::exporters::common {

namespace {

using Values = std::vector<CounterValue>;
constexpr int64_t kSecond = 1'000'000'000;

model::HostCounter counter_of(const std::string& kind, const std::string& unit,
                              std::vector<model::HostCounter::Value> values, bool is_gauge = false) {
  model::HostCounter counter;
  counter.host = "n1";
  counter.kind = kind;
  counter.device = "d";
  counter.name = "c";
  counter.unit = unit;
  counter.is_gauge = is_gauge;
  for (auto& at : values) at.time_ns *= kSecond;
  counter.values = std::move(values);
  return counter;
}

TEST(HostTracks, ARateIsNoughtWhereTheCounterStoodStill) {
  // Ten seconds apart, then still for forty; 50 GB in ten seconds are 5 GB/s.
  const auto counter = counter_of(
      "port", "bytes", {{0, 0}, {10, 50'000'000'000}, {20, 60'000'000'000}, {60, 110'000'000'000}});
  const HostTrack track(counter);
  EXPECT_EQ(track.host, "n1: links and GPUs");
  EXPECT_EQ(track.counter.name, "d c");
  EXPECT_EQ(track.counter.unit, "GB/s");
  EXPECT_EQ(
      track.counter.values,
      (Values{{0, 5000}, {10 * kSecond, 1000}, {20 * kSecond, 0}, {50 * kSecond, 5000}, {60 * kSecond, 0}}));
}

TEST(HostTracks, OfTwoReadingsTheRateIsTheMeanBetweenThem) {
  const auto counter = counter_of("gpu", "bytes", {{0, 0}, {50, 100'000'000'000}});
  EXPECT_EQ(rate_of(counter), (Values{{0, 2000}, {50 * kSecond, 0}}));
}

TEST(HostTracks, WhatNeverChangedIsDrawnOfGpusAlone) {
  EXPECT_TRUE(HostTrack(counter_of("port", "count", {{1, 0}})).counter.values.empty());
  EXPECT_TRUE(HostTrack(counter_of("port", "Mb/s", {{1, 400000}}, true)).counter.values.empty());
  EXPECT_TRUE(HostTrack(counter_of("gpu", "bits", {{1, 0}}, true)).counter.values.empty());
  const HostTrack clock(counter_of("gpu", "MHz", {{1, 1980}}, true));
  EXPECT_EQ(clock.counter.values, (Values{{kSecond, 1980}}));
  const HostTrack power(counter_of("gpu", "mW", {{1, 700'500}}, true));
  EXPECT_EQ(power.counter.unit, "W");
  EXPECT_TRUE(power.counter.in_thousandths);
}

}  // namespace
}  // namespace lockstep::exporters::common
