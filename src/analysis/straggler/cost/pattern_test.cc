// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/cost/pattern.h"

#include <gtest/gtest.h>

#include <functional>

namespace lockstep::analysis::straggler {
namespace {

using Kind = Pattern::Kind;

constexpr size_t kSteps = 250, kFrom = 2;

// Deterministic noise below 1, of nobody in particular.
double noise(size_t step) { return static_cast<double>(step * 2654435761u % 97) / 97; }

Pattern pattern_of(const std::function<double(size_t step)>& late_ns, size_t steps = kSteps) {
  std::vector<float> cost(steps);
  for (size_t step = 0; step < steps; ++step) cost[step] = static_cast<float>(late_ns(step) + noise(step));
  return find_pattern(cost, kFrom);
}

TEST(Pattern, OfNothingIsNone) {
  EXPECT_EQ(find_pattern({}, 0).kind, Kind::kNone);
  EXPECT_EQ(find_pattern(std::vector<float>(10), 2).kind, Kind::kNone);
  std::vector<float> warms_up(10);
  warms_up[1] = 5;
  EXPECT_EQ(find_pattern(warms_up, 2).kind, Kind::kNone) << "step 1 does not count";
}

TEST(Pattern, EveryStepSinceOne) {
  for (size_t since : {2u, 7u, 125u, 200u, 245u}) {
    const Pattern pattern = pattern_of([&](size_t step) { return step >= since ? 100.0 : 0; });
    EXPECT_EQ(pattern.kind, Kind::kSince) << since;
    EXPECT_EQ(pattern.first, since);
    EXPECT_EQ(pattern.last, kSteps - 1);
    EXPECT_EQ(pattern.events, kSteps - since);
  }
}

TEST(Pattern, AWindowHasEndedOneStepInFiftyBeforeTheEnd) {
  const auto until = [](size_t end) {
    return pattern_of([=](size_t step) { return step >= 100 && step < end ? 100.0 : 0; });
  };
  EXPECT_EQ(until(kSteps - 5).kind, Kind::kSince);
  EXPECT_EQ(until(kSteps - 6).kind, Kind::kWindow);
  EXPECT_EQ(until(151).first, 100u);
  EXPECT_EQ(until(151).last, 150u);
}

TEST(Pattern, ThreeQuartersOfTheStepsAreNearlyAll) {
  const auto of_four = [](size_t late) {
    return pattern_of([=](size_t step) { return step % 4 < late ? 100.0 : 0; });
  };
  EXPECT_EQ(of_four(4).kind, Kind::kSince);
  EXPECT_EQ(of_four(3).kind, Kind::kSince);
  EXPECT_EQ(of_four(2).kind, Kind::kPeriodic);
  EXPECT_EQ(of_four(2).period, 4u);
  EXPECT_EQ(of_four(1).period, 4u);
}

TEST(Pattern, OneStepInSoMany) {
  for (size_t period : {2u, 3u, 10u, 40u, 60u}) {
    const Pattern pattern = pattern_of([&](size_t step) { return step % period == period - 1 ? 100.0 : 0; });
    EXPECT_EQ(pattern.kind, Kind::kPeriodic) << period;
    EXPECT_EQ(pattern.period, period);
    EXPECT_EQ(pattern.events, pattern.late.size());
  }
  const auto by_turns = [](size_t gap, size_t other) {
    return pattern_of([=](size_t step) {
      const size_t at = step % (gap + other);
      return at == 10 || at == 10 + gap ? 100.0 : 0;
    });
  };
  EXPECT_EQ(by_turns(40, 44).period, 40u) << "a tenth of the period";
  EXPECT_EQ(by_turns(40, 45).kind, Kind::kTail);
}

TEST(Pattern, APeriodTakesFourTimes) {
  const auto times = [](size_t count) {
    return pattern_of([=](size_t step) { return step % 20 == 10 && step < 20 * count ? 100.0 : 0; });
  };
  EXPECT_EQ(times(3).kind, Kind::kTail);
  EXPECT_EQ(times(4).kind, Kind::kPeriodic);
  const std::vector<float> short_run = {0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9};
  EXPECT_EQ(find_pattern(short_run, 0).kind, Kind::kPeriodic) << "two more of 4 steps, by chance in 1 of 90";
  EXPECT_EQ(times(4).first, 10u);
  EXPECT_EQ(times(4).last, 70u);
}

TEST(Pattern, AMissedTimeDoesNotEndAPeriod) {
  const Pattern pattern =
      pattern_of([&](size_t step) { return step % 20 == 19 && step != 99 && step != 119 ? 100.0 : 0; });
  EXPECT_EQ(pattern.kind, Kind::kPeriodic);
  EXPECT_EQ(pattern.period, 20u);
}

// A quarter of the steps, as it happens: some distances are 4, or 8, or 12.
TEST(Pattern, DistancesThatChanceMakesAreNoPeriod) {
  size_t periods = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto late_by_chance = [=](size_t step) {
      uint64_t x = (step + 1000 * seed) * 0x9e3779b97f4a7c15u;
      x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
      return (x >> 32) % 4 == 0;
    };
    std::vector<float> cost(30);
    for (size_t step = 0; step < cost.size(); ++step) cost[step] = late_by_chance(step) ? 100 : 0;
    periods += find_pattern(cost, 0).kind == Kind::kPeriodic;
  }
  EXPECT_LE(periods, 8u);
}

TEST(Pattern, NowAndThen) {
  const std::vector<size_t> late = {5, 9, 30, 31, 70, 81, 150, 233};
  const Pattern pattern = pattern_of(
      [&](size_t step) { return std::find(late.begin(), late.end(), step) != late.end() ? 100.0 : 0; });
  EXPECT_EQ(pattern.kind, Kind::kTail);
  EXPECT_EQ(pattern.late, late);
  EXPECT_EQ(pattern.events, 7u) << "30 and 31 are one";
}

TEST(Pattern, MoreAndMore) {
  const Pattern pattern =
      pattern_of([](size_t step) { return step < 100 ? 0 : static_cast<double>(step - 100); });
  EXPECT_EQ(pattern.kind, Kind::kGrowing);
  EXPECT_NEAR(static_cast<double>(pattern.first), 105, 5);
  const auto by = [](double grown) {
    return pattern_of(
        [=](size_t step) { return 100 * (1 + (grown - 1) * static_cast<double>(step) / kSteps); });
  };
  EXPECT_EQ(by(1.1).kind, Kind::kSince);
  EXPECT_EQ(by(2).kind, Kind::kSince) << "the last sixth costs less than twice the first";
  EXPECT_EQ(by(3).kind, Kind::kGrowing);
  const Pattern less = pattern_of([](size_t step) { return 300 - static_cast<double>(step); });
  EXPECT_EQ(less.kind, Kind::kSince);
}

TEST(Pattern, ATrendTakesNineSteps) {
  const auto since_end = [](size_t count) {
    return pattern_of([=](size_t step) {
      const size_t left = kSteps - step;
      return left > count ? 0 : 100 * (1 + 0.3 * static_cast<double>(count - left));
    });
  };
  EXPECT_EQ(since_end(8).kind, Kind::kSince);
  EXPECT_EQ(since_end(9).kind, Kind::kGrowing);
}

TEST(Pattern, OnceIsAWindowOfOneStep) {
  const Pattern pattern = pattern_of([](size_t step) { return step == 150 ? 2000.0 : 0; });
  EXPECT_EQ(pattern.first, 150u);
  EXPECT_EQ(pattern.last, 150u);
  EXPECT_EQ(pattern.events, 1u);
}

}  // namespace
}  // namespace lockstep::analysis::straggler
