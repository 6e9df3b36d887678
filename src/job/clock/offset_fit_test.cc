// SPDX-License-Identifier: Apache-2.0
#include "job/clock/offset_fit.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::job::clock {
namespace {

constexpr int64_t kFrom = 1'760'000'000'000'000'000;
constexpr int64_t kSecond = 1'000'000'000;

TEST(OffsetFit, KnowsNothingFromOneSide) {
  OffsetFit fit(kFrom, kFrom + kSecond, 512);
  EXPECT_TRUE(fit.fit().knots.empty());
  fit.at_least(kFrom, 5);
  fit.at_least(kFrom + 10, 7);
  EXPECT_TRUE(fit.fit().knots.empty());
}

TEST(OffsetFit, IsTheSpaceBetweenTwoBounds) {
  OffsetFit fit(kFrom, kFrom, 512);
  fit.at_least(kFrom, 1000);
  fit.at_most(kFrom, 3000);
  OffsetFit::Proven proven = fit.fit();
  ASSERT_EQ(proven.knots.size(), 1u);
  EXPECT_LE(proven.knots[0].low, 1000);
  EXPECT_GE(proven.knots[0].low, 995);
  EXPECT_GE(proven.knots[0].high, 3000);
  EXPECT_LE(proven.knots[0].high, 3005);
  EXPECT_TRUE(proven.contradictions.empty());
}

// Exact bounds 8 s apart: a rate that wanders by 0.1 ppm within that time may be 400 ns off a line, which is
// as far as lines may pass the bounds, and as far again as the clock may be off such a line. 1 ns each is
// rounding.
TEST(OffsetFit, WhatARateMayWanderWidensTheInterval) {
  OffsetFit fit(kFrom, kFrom + 8 * kSecond, 512);
  for (const int64_t at : {kFrom, kFrom + 8 * kSecond}) {
    fit.at_least(at, 5000);
    fit.at_most(at, 5000);
  }
  const OffsetFit::Proven proven = fit.fit();
  ASSERT_EQ(proven.knots.size(), 9u);
  for (const size_t end : {size_t{0}, size_t{8}}) {
    EXPECT_NEAR(static_cast<double>(proven.knots[end].low), 5000 - 2 * 401, 2);
    EXPECT_NEAR(static_cast<double>(proven.knots[end].high), 5000 + 2 * 401, 2);
  }
}

TEST(OffsetFit, HoldsADriftingClockThroughOneSidedBounds) {
  // Bounds of either side never come together, and are 100 us loose: the drift is what joins them.
  constexpr double kDrift = 40e-6;
  auto truth = [](int64_t at) {
    return 7'000'000 + static_cast<int64_t>(kDrift * static_cast<double>(at - kFrom));
  };
  OffsetFit fit(kFrom, kFrom + 8 * kSecond, 8192);
  for (int i = 0; i < 80; ++i) {
    int64_t at = kFrom + i * kSecond / 10;
    if (i % 2 == 0)
      fit.at_least(at, truth(at) - 100'000);
    else
      fit.at_most(at, truth(at) + 100'000);
  }
  model::HostClock clock(fit.fit().knots);
  for (int i = 0; i < 80; ++i) {
    int64_t at = kFrom + i * kSecond / 10;
    auto offset = clock.offset(at);
    ASSERT_TRUE(offset);
    EXPECT_LE(std::abs(offset->ns - truth(at)), offset->half_width_ns);
    EXPECT_LT(offset->half_width_ns, 130'000);
  }
}

TEST(OffsetFit, CoversBothSidesOfAStep) {
  OffsetFit fit(kFrom, kFrom + 4 * kSecond, 8192);
  constexpr int64_t kStep = kFrom + 2 * kSecond;
  auto truth = [](int64_t at) { return at < kStep ? -4'000'000 : 9'000'000; };
  for (int i = 0; i < 40; ++i) {
    int64_t at = kFrom + i * kSecond / 10 + kSecond / 20;
    fit.at_least(at, truth(at) - 30'000 - i % 3 * 1000);
    fit.at_most(at + 1000, truth(at) + 30'000 + i % 5 * 1000);
  }
  OffsetFit::Proven proven = fit.fit();
  ASSERT_EQ(proven.contradictions.size(), 1u);
  const OffsetFit::Contradiction& step = proven.contradictions[0];
  EXPECT_LE(step.from_ns, kStep);
  EXPECT_GE(step.until_ns, kStep);
  EXPECT_LT(step.until_ns - step.from_ns, kSecond);
  EXPECT_LE(std::abs(step.moved_ns - 13'000'000), step.half_width_ns);
  EXPECT_LT(step.half_width_ns, 200'000);
  model::HostClock clock(proven.knots);
  for (int64_t at = kFrom; at < kFrom + 4 * kSecond; at += kSecond / 50) {
    auto offset = clock.offset(at);
    EXPECT_LE(std::abs(offset->ns - truth(at)), offset->half_width_ns) << (at - kFrom);
    if (std::abs(at - kStep) > kSecond / 2) {
      EXPECT_LT(offset->half_width_ns, 150'000);
    }
  }
}

// After a step, one side is bounded at once and the other a second later: until then nothing contradicts the
// old clock, and nothing says when in that second it moved.
TEST(OffsetFit, AStepThatOneSideShowsLateMayHaveBeenAnyTimeBefore) {
  for (const int64_t by : {13'000'000, -13'000'000}) {
    constexpr int64_t kStep = kFrom + 2 * kSecond, kShown = kStep + kSecond;
    OffsetFit fit(kFrom, kFrom + 4 * kSecond, 8192);
    auto truth = [&](int64_t at) { return at < kStep ? 0 : by; };
    for (int i = 0; i < 40; ++i) {
      const int64_t at = kFrom + i * kSecond / 10 + kSecond / 20;
      const bool quiet = at >= kStep && at < kShown;
      if (by < 0 || !quiet) fit.at_least(at, truth(at) - 30'000);
      if (by > 0 || !quiet) fit.at_most(at + 1000, truth(at) + 30'000);
    }
    const OffsetFit::Proven proven = fit.fit();
    ASSERT_EQ(proven.contradictions.size(), 1u);
    EXPECT_LE(proven.contradictions[0].from_ns, kStep);
    EXPECT_GE(proven.contradictions[0].until_ns, kShown);
    const model::HostClock clock(proven.knots);
    for (int64_t at = kFrom; at < kFrom + 4 * kSecond; at += kSecond / 50) {
      const auto offset = clock.offset(at);
      ASSERT_TRUE(offset);
      EXPECT_LE(std::abs(offset->ns - truth(at)), offset->half_width_ns) << (at - kFrom) << " by " << by;
    }
    EXPECT_LT(clock.offset(kFrom + kSecond)->half_width_ns, 60'000) << "what nobody doubts stays narrow";
    EXPECT_LT(clock.offset(kFrom + 7 * kSecond / 2)->half_width_ns, 60'000);
  }
}

TEST(OffsetFit, SetsOneWrongBoundApart) {
  OffsetFit fit(kFrom, kFrom + 4 * kSecond, 8192);
  for (int i = 0; i < 40; ++i) {
    int64_t at = kFrom + i * kSecond / 10;
    fit.at_least(at, i == 20 ? 5'000'000 : -20'000);
    fit.at_most(at + 1000, 20'000);
  }
  OffsetFit::Proven proven = fit.fit();
  ASSERT_EQ(proven.contradictions.size(), 1u);
  model::HostClock clock(proven.knots);
  for (int64_t at = kFrom; at < kFrom + 4 * kSecond; at += kSecond / 50) {
    auto offset = clock.offset(at);
    EXPECT_LE(std::abs(offset->ns), offset->half_width_ns);
  }
  auto wrong = clock.offset(kFrom + 2 * kSecond);
  EXPECT_GE(wrong->ns + wrong->half_width_ns, 5'000'000);
}

TEST(OffsetFit, NothingButContradictionsIsOneWideSpan) {
  OffsetFit fit(kFrom, kFrom + 100 * kSecond, 8192);
  std::mt19937_64 random(3);
  for (int i = 0; i < 5000; ++i) {
    int64_t at = kFrom + static_cast<int64_t>(random() % (100 * kSecond));
    fit.at_least(at, static_cast<int64_t>(random() % (kSecond)));
    fit.at_most(at, -static_cast<int64_t>(random() % (kSecond)));
  }
  OffsetFit::Proven proven = fit.fit();
  EXPECT_FALSE(proven.knots.empty());
  EXPECT_GE(proven.contradictions.size(), 1u);
  EXPECT_LE(proven.contradictions.size(), 64u);
}

TEST(OffsetFit, TakesTimesFromAnywhere) {
  OffsetFit fit(1, int64_t{1} << 61, 512);
  fit.at_least(1, -(int64_t{1} << 61));
  fit.at_most((int64_t{1} << 62) - 1, int64_t{1} << 61);
  fit.at_most(5, (int64_t{1} << 62) - 2);
  EXPECT_FALSE(fit.fit().knots.empty());
}

TEST(OffsetFit, ManyRandomLinesAreHeld) {
  int64_t widest = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    auto below = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
    double drift = static_cast<double>(below(800'000) - 400'000) * 1e-9;
    int64_t start = below(2'000'000'000) - 1'000'000'000, length = (1 + below(40)) * kSecond;
    auto truth = [&](int64_t at) {
      return start + static_cast<int64_t>(drift * static_cast<double>(at - kFrom));
    };
    OffsetFit fit(kFrom, kFrom + length, 8192);
    for (int i = 0; i < 400; ++i) {
      int64_t at = kFrom + below(length);
      if (below(3) != 0) fit.at_least(at, truth(at) - below(300'000));
      at += below(1'000'000);
      if (below(3) != 0) fit.at_most(at, truth(at) + below(300'000));
    }
    OffsetFit::Proven proven = fit.fit();
    EXPECT_TRUE(proven.contradictions.empty()) << seed;
    model::HostClock clock(proven.knots);
    for (int i = 0; i <= 100; ++i) {
      int64_t at = kFrom + length / 100 * i;
      auto offset = clock.offset(at);
      ASSERT_TRUE(offset) << seed;
      EXPECT_LE(std::abs(offset->ns - truth(at)), offset->half_width_ns) << "seed " << seed << " at " << i;
      widest = std::max(widest, offset->half_width_ns);
    }
  }
  RecordProperty("widest_ns", std::to_string(widest));
  EXPECT_LT(widest, 5'000'000);
}

}  // namespace
}  // namespace lockstep::job::clock
