// SPDX-License-Identifier: Apache-2.0
// The time of day, as files and stores of other hosts have it.
#pragma once
#include <cstdint>
#include <ctime>

namespace lockstep {

// Nanoseconds since 1970 by CLOCK_REALTIME: it may step, so never for durations. Any thread.
inline int64_t unix_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace lockstep
