// SPDX-License-Identifier: Apache-2.0
#include "verdict/link_series.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::verdict {
namespace {

using analysis::Severity;

constexpr int64_t kStartNs = 1'764'100'000'000'000'000;
int64_t at_s(double seconds) { return kStartNs + static_cast<int64_t>(seconds * 1e9); }

// Hosts' logs, judged and picked as a run's are.
class PickedLinkSeries : public ::testing::Test {
 protected:
  void add(const std::string& host, const std::string& lines, double start_s = 0) {
    const std::string text = "lockstep link samples 2\nhost " + host + "\nboot b\npid 1\nstart " +
                             std::to_string(at_s(start_s)) + "\n" + lines;
    const auto log = links::parse_sample_log(text, "test");
    ASSERT_TRUE(log) << log.error().message();
    if (!hosts_.empty() && hosts_.back() != host) end_host();
    hosts_.push_back(host);
    if (judge_.add(*log)) picker_.add(*log);
  }
  void end_host() { picker_.end_host(judge_.hosts().back()); }
  PickedSeries take() {
    end_host();
    return picker_.take();
  }
  static std::vector<std::string> names(const PickedSeries& picked) {
    std::vector<std::string> found;
    for (const LinkSeries& series : picked.list)
      found.push_back(series.host + " " + series.device + " " + series.counter);
    return found;
  }

  std::vector<std::string> hosts_;
  links::SamplesJudge judge_;
  LinkSeriesPicker picker_{{"named"}};
};

TEST_F(PickedLinkSeries, ErrorsComeFirstThenSlowedGpusThenClocksThenTrafficOfNamedHosts) {
  const std::string traffic = "counter 0 port mlx5_0/1 port_xmit_data\nat 0 0=0\nat 10000 0=250\n";
  add("busy", traffic);
  add("faulty",
      "counter 0 port mlx5_1/1 link_downed\ncounter 1 port mlx5_1/1 symbol_error\n"
      "counter 2 gpu 0000:1b:00.0 sm_clock_mhz\ncounter 3 gpu 0000:1b:00.0 throttle\n"
      "counter 4 gpu 0000:1b:00.0 temperature_c\ncounter 5 gpu 0000:2b:00.0 sm_clock_mhz\n"
      "counter 6 gpu 0000:2b:00.0 throttle\ncounter 7 port mlx5_1/1 port_xmit_wait\n"
      "at 0 0=1 1=7 2=1980 3=4 4=40 5=345 6=4 7=1\n"
      "at 20000 0=3 1=8 2=1100 3=72 4=90 5=1980 6=1 7=900\nat 60000 3=4\nat 100000\n");
  add("named", traffic);
  const PickedSeries picked = take();
  EXPECT_EQ(picked.omitted, 0u);
  ASSERT_EQ(names(picked),
            (std::vector<std::string>{"faulty mlx5_1/1 link_downed", "faulty mlx5_1/1 symbol_error",
                                      "faulty 0000:1b:00.0 throttle", "faulty 0000:1b:00.0 sm_clock",
                                      "named mlx5_0/1 sent"}))
      << "congestion is no fault, a clock that rises says nothing, and nobody asks for a healthy host's traffic";
  EXPECT_EQ(picked.list[0].severity, Severity::kWarning);
  EXPECT_EQ(picked.list[0].total, 2u);
  EXPECT_EQ(picked.list[0].says, "the link went down and came back");
  EXPECT_FALSE(picked.list[1].severity) << "one in 100 s is what healthy links have";
  EXPECT_EQ(picked.list[2].says, "hardware slowdown, hardware thermal limit");
  EXPECT_EQ(picked.list[2].total, 40'000'000'000u);
  EXPECT_EQ(picked.list[2].severity, Severity::kWarning);
  EXPECT_EQ(picked.list[4].total, 1000u) << "InfiniBand counts words of four bytes";
}

TEST_F(PickedLinkSeries, WhatCouldNotBeReadIsNotSampled) {
  add("named",
      "counter 0 gpu 0000:1b:00.0 sm_clock_mhz\nat 0 0=1980\nat 10000 0=300\nat 20000 0=-\nat 30000 0=500\n"
      "at 40000\n");
  const PickedSeries picked = take();
  ASSERT_EQ(picked.list.size(), 1u);
  const LinkSeries& clock = picked.list[0];
  ASSERT_EQ(clock.parts.size(), 3u);
  EXPECT_EQ(clock.parts[1].to_ns, at_s(20));
  ASSERT_EQ(clock.sampled.size(), 2u);
  EXPECT_EQ(clock.sampled[0].to_ns, at_s(20));
  EXPECT_EQ(clock.sampled[1].from_ns, at_s(30));
  EXPECT_EQ(clock.sampled[1].to_ns, at_s(40));
}

TEST_F(PickedLinkSeries, ABurstAfterAQuietTimeCameWithinOneReading) {
  add("named",
      "counter 0 net eth0 tx_bytes\nat 0 0=0\nat 10000 0=1\nat 20000 0=2\nat 30000 0=3\nat 40000 0=4\n"
      "at 600000 0=1004\nat 610000\n");
  const PickedSeries picked = take();
  ASSERT_EQ(picked.list.size(), 1u);
  EXPECT_EQ(picked.list[0].parts.back().from_ns, at_s(590));
  EXPECT_EQ(picked.list[0].parts.back().to_ns, at_s(600));
  EXPECT_EQ(picked.list[0].sampled.back().to_ns, at_s(610)) << "nothing moved, which was seen";
}

TEST_F(PickedLinkSeries, XidsCountFromZeroAndLogsOfOneHostFollowEachOther) {
  add("a", "counter 0 gpu 0000:1b:00.0 xid_79\nat 5000 0=1\nat 9000 0=3\nat 10000\nend\n");
  add("a", "counter 0 gpu 0000:1b:00.0 xid_79\nat 1000 0=1\nat 10000\n", 5);
  add("a", "counter 0 gpu 0000:1b:00.0 xid_79\nat 1000 0=1\nat 10000\n", 60);
  const PickedSeries picked = take();
  ASSERT_EQ(picked.list.size(), 1u);
  EXPECT_EQ(picked.list[0].total, 4u) << "a second launcher's log of the same time counts nothing twice";
  EXPECT_EQ(picked.list[0].severity, Severity::kWarning);
  ASSERT_EQ(picked.list[0].sampled.size(), 2u);
  EXPECT_EQ(picked.list[0].sampled[1].from_ns, at_s(60));
}

TEST_F(PickedLinkSeries, OfManyTheWorstAreKeptAndTheOthersCounted) {
  std::string counters, starts, ends;
  for (int i = 0; i < 100; ++i) {
    const std::string number = std::to_string(i);
    counters += "counter " + number + " port mlx5_" + number + "/1 port_rcv_errors\n";
    starts += " " + number + "=0";
    ends += " " + number + "=" + std::to_string(i + 1);
  }
  add("a", counters + "at 0" + starts + "\nat 1000" + ends + "\n");
  const PickedSeries picked = take();
  ASSERT_EQ(picked.list.size(), LinkSeriesPicker::kMost);
  EXPECT_EQ(picked.omitted, 100 - LinkSeriesPicker::kMost);
  EXPECT_EQ(picked.list[0].device, "mlx5_99/1");
}

TEST_F(PickedLinkSeries, LongOnesAreThinnedOutAndLoseNothing) {
  std::string lines = "counter 0 port mlx5_0/1 port_rcv_errors\ncounter 1 gpu 0000:1b:00.0 sm_clock_mhz\n";
  for (int i = 0; i < 40'000; ++i) {
    lines += "at " + std::to_string(i * 1000) + " 1=" + std::to_string(1000 + i % 7);
    // 16 bits, where it stops.
    lines += " 0=" + std::to_string(i) + "\n";
  }
  add("a", lines);
  const PickedSeries picked = take();
  ASSERT_EQ(picked.list.size(), 2u);
  for (const LinkSeries& series : picked.list) EXPECT_LE(series.parts.size(), 4096u);
  EXPECT_EQ(picked.list[0].total, 39'999u);
  uint64_t sum = 0;
  for (const SeriesPart& part : picked.list[0].parts) sum += part.value;
  EXPECT_EQ(sum, 39'999u);
  EXPECT_TRUE(std::all_of(picked.list[1].parts.begin(), picked.list[1].parts.end(),
                          [](const SeriesPart& part) { return part.value >= 1000 && part.value < 1007; }));
}

}  // namespace
}  // namespace lockstep::verdict
