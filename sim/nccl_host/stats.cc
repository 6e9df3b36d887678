// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/stats.h"

#include <algorithm>

namespace lockstep::sim {

double ns_per_tick() {
  static const double value = [] {
    const uint64_t ns = monotonic_ns(), tick = ticks();
    while (monotonic_ns() - ns < 2'000'000) {
    }
    const uint64_t elapsed_ns = monotonic_ns() - ns, elapsed = ticks() - tick;
    return elapsed == 0 ? 1.0 : static_cast<double>(elapsed_ns) / static_cast<double>(elapsed);
  }();
  return value;
}

uint64_t tick_cost() {
  static const uint64_t value = [] {
    std::array<uint64_t, 1001> costs{};
    for (uint64_t& cost : costs) {
      const uint64_t begin = ticks();
      cost = ticks() - begin;
    }
    std::nth_element(costs.begin(), costs.begin() + 500, costs.end());
    return costs[500];
  }();
  return value;
}

void Timing::merge(const Timing& other) {
  calls += other.calls;
  ticks += other.ticks;
  max_ticks = std::max(max_ticks, other.max_ticks);
}

void Stats::merge(const Stats& other) {
  for (size_t i = 0; i < kEventKinds; ++i) {
    starts[i] += other.starts[i];
    dropped[i] += other.dropped[i];
  }
  for (auto member : {&Stats::states, &Stats::stops, &Stats::inits, &Stats::finalizes, &Stats::dropped_states,
                      &Stats::gated_starts, &Stats::gated_states, &Stats::gated_stops, &Stats::null_handles,
                      &Stats::unwritten_handles, &Stats::null_contexts, &Stats::failed_inits,
                      &Stats::failed_calls, &Stats::after_unload})
    this->*member += other.*member;
  for (auto member : {&Stats::init, &Stats::start, &Stats::state, &Stats::stop, &Stats::finalize})
    (this->*member).merge(other.*member);
}

}  // namespace lockstep::sim
