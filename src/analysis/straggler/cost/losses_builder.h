// SPDX-License-Identifier: Apache-2.0
// Losses of made-up ranks, for tests: steps of 10 ms, each late where the test says so.
#pragma once
#include <functional>

#include "analysis/straggler/cost/losses.h"

namespace lockstep::analysis::straggler {

inline constexpr double kStepMs = 10;

// `late_ms`: of a rank in a step.
inline Losses losses_of(size_t ranks, size_t steps,
                        const std::function<double(size_t rank, size_t step)>& late_ms, bool timed = true) {
  Losses losses;
  losses.first = 2;
  losses.compared_ranks = ranks;
  losses.timed = timed;
  losses.usual_step_ns = kStepMs * 1e6;
  losses.span_ns = losses.usual_step_ns * static_cast<double>(steps);
  losses.others.resize(steps);
  losses.uneven_ns.resize(steps);
  for (size_t step = 0; step < steps; ++step) {
    losses.steps.begin_ns.push_back(static_cast<int64_t>(step * 10'000'000));
    losses.steps.number.push_back(static_cast<int64_t>(step));
  }
  losses.steps_by_clock = {losses.steps};
  for (size_t rank = 0; rank < ranks; ++rank) {
    RankLoss& loss = losses.ranks.emplace_back();
    loss.process = static_cast<uint32_t>(rank);
    for (size_t step = 0; step < steps; ++step) {
      const auto ns = static_cast<float>(late_ms(rank, step) * 1e6);
      loss.by_step.push_back(ns);
      loss.peaks.push_back(static_cast<double>(ns) >= losses.least_scattered_ns() ? ns : 0);
      loss.late_ns.push_back(ns > 0 ? losses.steps.begin_ns[step] + static_cast<int64_t>(ns) : 0);
    }
  }
  return losses;
}

}  // namespace lockstep::analysis::straggler
