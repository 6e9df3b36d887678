// SPDX-License-Identifier: Apache-2.0
// The cycle counter is the cheapest clock of a host, but only an invariant one keeps its rate over frequency
// changes and sleep states; without that CLOCK_MONOTONIC is used. An anchor is the best of five readings, as
// a preemption in the middle of one would show as an error of the clocks.
#include "capture/core/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lockstep::capture {

format::HostClock g_host_clock = format::HostClock::kMonotonic;

uint64_t choose_host_clock() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kInvariantTsc = 1u << 8;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & kInvariantTsc) != 0)
    g_host_clock = format::HostClock::kTsc;
  // Many processors do not give the rate of their counter; anchors measure it.
  return g_host_clock == format::HostClock::kTsc ? 0 : 1000000000;
#elif defined(__aarch64__)
  g_host_clock = format::HostClock::kCounterAarch64;
  uint64_t hz;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hz));
  return hz;
#else
  return 1000000000;
#endif
}

format::ClockAnchor take_anchor() {
  format::ClockAnchor best{};
  best.width_ns = ~0u;
  for (int attempt = 0; attempt < 5; ++attempt) {
    int64_t before = clock_ns(CLOCK_MONOTONIC);
    uint64_t ticks_before = read_ticks();
    int64_t realtime = clock_ns(CLOCK_REALTIME);
    int64_t boottime = clock_ns(CLOCK_BOOTTIME);
    uint64_t ticks_after = read_ticks();
    int64_t after = clock_ns(CLOCK_MONOTONIC);
    auto width = static_cast<uint64_t>(after - before);
    if (width >= best.width_ns) continue;
    best.ticks = ticks_before + (ticks_after - ticks_before) / 2;
    best.monotonic_ns = before + (after - before) / 2;
    best.boottime_ns = boottime;
    best.realtime_ns = realtime;
    best.width_ns = static_cast<uint32_t>(width);
  }
  return best;
}

}  // namespace lockstep::capture
