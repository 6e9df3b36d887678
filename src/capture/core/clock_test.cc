// SPDX-License-Identifier: Apache-2.0
#include "capture/core/clock.h"

#include <gtest/gtest.h>

namespace lockstep::capture {
namespace {

TEST(Clock, AnchorsAgreeWithEveryClock) {
  choose_host_clock();
  int64_t before = clock_ns(CLOCK_MONOTONIC), real = clock_ns(CLOCK_REALTIME);
  uint64_t ticks = read_ticks();
  format::ClockAnchor anchor = take_anchor();
  EXPECT_GE(anchor.ticks, ticks);
  EXPECT_LE(anchor.ticks, read_ticks());
  EXPECT_GE(anchor.monotonic_ns, before);
  EXPECT_LE(anchor.monotonic_ns, clock_ns(CLOCK_MONOTONIC));
  EXPECT_GE(anchor.boottime_ns, anchor.monotonic_ns - int64_t{anchor.width_ns});
  EXPECT_LT(anchor.realtime_ns - real, 1'000'000'000);
  EXPECT_GT(anchor.width_ns, 0u);
}

TEST(Clock, TicksDoNotGoBack) {
  choose_host_clock();
  uint64_t last = read_ticks();
  for (int i = 0; i < 100'000; ++i) {
    uint64_t now = read_ticks();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace lockstep::capture
