// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/cupti_clock.h"

#include <gtest/gtest.h>

#include "capture/core/clock.h"
#include "tests/support/child.h"

namespace lockstep::capture::cuda {
namespace {

// Clocks that count ticks, some faster and from elsewhere: what a time should be is then known exactly.
constexpr uint64_t kEpoch = 1'700'000'000'000'000'000;
uint64_t g_step = 0;
uint64_t slow() { return kEpoch + read_ticks() / 2 - g_step; }
uint64_t fast() { return read_ticks() * 3; }
uint64_t g_shown = 0;
uint64_t coarse() { return g_shown; }

double ticks_of(double ns) {
  static const double rate = [] {
    const format::ClockAnchor first = take_anchor();
    test::sleep_ms(20);
    const format::ClockAnchor second = take_anchor();
    return static_cast<double>(second.ticks - first.ticks) /
           static_cast<double>(second.monotonic_ns - first.monotonic_ns);
  }();
  return ns * rate;
}
// Two microseconds: what a reading may be off on a busy machine.
void expect_near(uint64_t ticks, uint64_t truth) {
  EXPECT_NEAR(static_cast<double>(static_cast<int64_t>(ticks - truth)), 0, ticks_of(2000));
}

class CuptiClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    choose_host_clock();
    g_step = 0;
  }
  void read_often() {
    for (int i = 0; i < 5; ++i) {
      clock_.read();
      test::sleep_ms(25);
    }
  }
  CuptiClock clock_{slow};
};

TEST_F(CuptiClockTest, ATimeLiesOnTheLineOfItsReadings) {
  read_often();
  const uint64_t now = read_ticks();
  for (const double ago_ms : {0.0, 30.0, 90.0, 500.0}) {
    const uint64_t truth = now - static_cast<uint64_t>(ticks_of(ago_ms * 1e6));
    expect_near(clock_.ticks(kEpoch + truth / 2), truth);
  }
}

TEST_F(CuptiClockTest, OneReadingGoesByTheRateGiven) {
  clock_.set_rate(2);
  clock_.read();
  const uint64_t now = read_ticks();
  expect_near(clock_.ticks(kEpoch + now / 2), now);
}

TEST_F(CuptiClockTest, TwoReadingsOfOneTimeAreNoLine) {
  clock_.set_rate(2);
  clock_.change(coarse);
  const auto expect_between = [&](uint64_t before, uint64_t after) {
    EXPECT_GE(clock_.ticks(g_shown), before);
    EXPECT_LE(clock_.ticks(g_shown), after);
  };
  const uint64_t first = read_ticks();
  g_shown = kEpoch + first / 2;
  clock_.read();
  const uint64_t after_first = read_ticks();
  clock_.read();
  expect_between(first, after_first);
  // The first one that differs makes the line.
  test::sleep_ms(5);
  const uint64_t second = read_ticks();
  g_shown = kEpoch + second / 2;
  clock_.read();
  expect_between(second, read_ticks());
}

TEST_F(CuptiClockTest, ATimeFarFromAClockOfFewCountsIsRefused) {
  clock_.change(coarse);
  for (g_shown = 1'000'000'000'000; g_shown <= 1'000'000'000'001; ++g_shown) {
    clock_.read();
    test::sleep_ms(20);
  }
  EXPECT_EQ(clock_.ticks(g_shown - 1'000'000'000'000), 0u) << "no 64 bits hold that";
}

TEST_F(CuptiClockTest, ATimeBeforeAClockWasSetBackGoesByTheRateGiven) {
  clock_.set_rate(2);
  const uint64_t before = read_ticks();
  test::sleep_ms(20);
  clock_.read();
  g_step = 500'000'000;
  clock_.read();
  expect_near(clock_.ticks(kEpoch + before / 2), before);
}

TEST_F(CuptiClockTest, AnotherClockIsToldFromTheFirst) {
  read_often();
  const uint64_t before = read_ticks();
  clock_.change(fast);
  read_often();
  const uint64_t after = read_ticks();
  expect_near(clock_.ticks(kEpoch + before / 2), before);
  expect_near(clock_.ticks(after * 3), after);
}

TEST_F(CuptiClockTest, AClockSetBackIsWrongOnlyBetweenTwoReadings) {
  read_often();
  g_step = 3'600'000'000'000;
  read_often();
  const uint64_t now = read_ticks();
  expect_near(clock_.ticks(kEpoch + now / 2 - g_step), now);
}

TEST_F(CuptiClockTest, WhatNoClockCanHaveShownIsRefused) {
  EXPECT_EQ(clock_.ticks(kEpoch), 0u) << "nothing was read yet";
  read_often();
  EXPECT_EQ(clock_.ticks(slow() + 10'000'000'000), 0u) << "ten seconds from now";
  EXPECT_EQ(clock_.ticks(7), 0u);
  EXPECT_EQ(clock_.ticks(~uint64_t{0}), 0u);
}

}  // namespace
}  // namespace lockstep::capture::cuda
