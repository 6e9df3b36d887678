// SPDX-License-Identifier: Apache-2.0
// The host clock of a process file: the CPU's cycle counter where it is invariant, else CLOCK_MONOTONIC in
// ns. Any thread; reading takes no system call.
#pragma once
#include <time.h>

#include <cstdint>

#include "format/file_layout.h"
#include "format/records.h"

namespace lockstep::capture {

extern format::HostClock g_host_clock;  // set once, before capture starts

inline int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

inline uint64_t read_ticks() {
#if defined(__x86_64__)
  if (__builtin_expect(g_host_clock == format::HostClock::kTsc, 1)) return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
  return static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

// Ticks since an event's start, as stored: at least 1, kSaturated when it does not fit.
inline uint32_t ticks_after(uint64_t start, uint64_t now) {
  uint64_t after = now - start;
  if (static_cast<int64_t>(after) <= 0) return 1;
  return after >= format::kSaturated ? format::kSaturated : static_cast<uint32_t>(after);
}

// Finds out which clock to use. Returns its rate in Hz, 0 where only anchors can tell.
uint64_t choose_host_clock();
// Reads all clocks together, the tightest of a few tries.
format::ClockAnchor take_anchor();

}  // namespace lockstep::capture
