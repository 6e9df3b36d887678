// SPDX-License-Identifier: Apache-2.0
// What was called, what was held back and how long the plugin took. One Stats per thread, added up at the
// end.
#pragma once
#include <array>
#include <cstdint>
#include <ctime>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "nccl_host/program.h"

namespace lockstep::sim {

inline uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// CLOCK_REALTIME less CLOCK_MONOTONIC, now.
inline int64_t realtime_less_monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec -
         static_cast<int64_t>(monotonic_ns());
}

// The cheapest clock of the machine; tick_cost() and ns_per_tick() turn its differences into time.
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return monotonic_ns();
#endif
}
double ns_per_tick();
uint64_t tick_cost();  // ticks between two reads with nothing in between

struct Timing {
  uint64_t calls = 0, ticks = 0, max_ticks = 0;
  void add(uint64_t elapsed) {
    ++calls;
    ticks += elapsed;
    if (elapsed > max_ticks) max_ticks = elapsed;
  }
  void merge(const Timing& other);
};

struct Stats {
  std::array<uint64_t, kEventKinds> starts{};   // delivered to the plugin
  std::array<uint64_t, kEventKinds> dropped{};  // not representable at this version
  uint64_t states = 0, stops = 0, inits = 0, finalizes = 0;
  uint64_t dropped_states = 0;
  uint64_t gated_starts = 0, gated_states = 0, gated_stops = 0;  // held back by the mask or a NULL handle
  uint64_t null_handles = 0;                                     // starts that the plugin declined
  uint64_t unwritten_handles = 0, null_contexts = 0, failed_inits = 0, failed_calls = 0;
  uint64_t after_unload = 0;  // calls that had no library to go to
  Timing init, start, state, stop, finalize;

  void merge(const Stats& other);
  uint64_t callbacks() const { return start.calls + state.calls + stop.calls; }
  uint64_t callback_ticks() const { return start.ticks + state.ticks + stop.ticks; }
  // What a plugin must never do (nccl-profiler conformance): leave a handle unwritten, fail or return no
  // context.
  uint64_t violations() const { return unwritten_handles + null_contexts + failed_inits; }
};

}  // namespace lockstep::sim
