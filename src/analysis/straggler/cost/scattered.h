// SPDX-License-Identifier: Apache-2.0
// Lateness that is nobody's habit: a few long delays of one rank, or turns that ranks take.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/straggler/cost/delay_cost.h"
#include "analysis/straggler/cost/resampling.h"

namespace lockstep::analysis::straggler {

// One rank's delays that are nearly all that was lost beyond the usual, or twice as long as any other. Each
// is longer than a usual step.
struct FewDelays {
  size_t row = 0;             // position in DelayCost::ranks
  std::vector<size_t> steps;  // ascending
  double worst_ns = 0, total_ns = 0;
};
std::optional<FewDelays> few_delays(const DelayCost& costs);

// What the worst rank of each step lost, where nobody stands out.
struct Turns {
  double total_ns = 0;
  size_t steps = 0;  // that are in the sum
  size_t ranks = 0;  // that were the worst of a step
  bool one = false;  // nearly all of it is one rank's: too seldom for a habit
  std::vector<std::pair<uint32_t, Interval>> costliest;  // the process, and what it alone cost
};
std::optional<Turns> turns(const DelayCost& costs);

}  // namespace lockstep::analysis::straggler
