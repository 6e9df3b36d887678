// SPDX-License-Identifier: Apache-2.0
// DelayCost of made-up ranks, for tests: steps of 10 ms, each late where the test says so.
#pragma once
#include <functional>

#include "analysis/straggler/cost/delay_cost.h"

namespace lockstep::analysis::straggler {

inline constexpr double kStepMs = 10;

// `late_ms`: of a rank in a step.
inline DelayCost costs_of(size_t ranks, size_t steps,
                          const std::function<double(size_t rank, size_t step)>& late_ms, bool timed = true) {
  DelayCost costs;
  costs.first = 2;
  costs.compared_ranks = ranks;
  costs.timed = timed;
  costs.usual_step_ns = kStepMs * 1e6;
  costs.span_ns = costs.usual_step_ns * static_cast<double>(steps);
  costs.others.resize(steps);
  costs.uneven_ns.resize(steps);
  for (size_t step = 0; step < steps; ++step) {
    costs.steps.begin_ns.push_back(static_cast<int64_t>(step * 10'000'000));
    costs.steps.number.push_back(static_cast<int64_t>(step));
  }
  costs.steps_by_clock = {costs.steps};
  costs.domains = {0};
  for (size_t rank = 0; rank < ranks; ++rank) {
    RankCost& row = costs.ranks.emplace_back();
    row.process = static_cast<uint32_t>(rank);
    for (size_t step = 0; step < steps; ++step) {
      const auto ns = static_cast<float>(late_ms(rank, step) * 1e6);
      row.by_step.push_back(ns);
      row.peaks.push_back(static_cast<double>(ns) >= costs.least_scattered_ns() ? ns : 0);
      row.late_ns.push_back(ns > 0 ? costs.steps.begin_ns[step] + static_cast<int64_t>(ns) : 0);
    }
  }
  return costs;
}

}  // namespace lockstep::analysis::straggler
