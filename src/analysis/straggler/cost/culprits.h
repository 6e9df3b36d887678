// SPDX-License-Identifier: Apache-2.0
// Who is to blame for what the run lost to late arrivals: one rank, few, or nobody for certain.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/straggler/cost/delay_cost.h"
#include "analysis/straggler/cost/pattern.h"
#include "analysis/straggler/cost/resampling.h"

namespace lockstep::analysis::straggler {

struct Culprit {
  size_t row = 0;  // position in DelayCost::ranks
  Pattern pattern;
  // In the pattern's steps, ns: what it cost beyond whoever was the next latest and is not named; and what
  // the costliest of those did beyond the others of them.
  Interval cost, next;
  bool is_apart = false;   // the one is more than the other, of the same steps, beyond doubt
  double per_step_ns = 0;  // median of the late steps
  double total_ns = 0;     // of the pattern's steps, whoever else was late
  // Another of them that is late together with it and exchanges messages with it, on a clock that does not
  // compare: either may only have waited for the other. A position in DelayCost::ranks.
  std::optional<size_t> either;
};

// The costliest first. Not more than half of the ranks: of two that are late by turns neither stands out.
std::vector<Culprit> culprits(const DelayCost& costs);

// Whether nearly all steps in which either is late are late steps of both.
bool are_late_together(const Culprit& a, const Culprit& b);

// What each of DelayCost::ranks alone cost the others in the steps that count, beyond whoever was the next
// latest, without what ranks differ by in a pause that all of them make.
std::vector<Interval> own_costs(const DelayCost& costs);

}  // namespace lockstep::analysis::straggler
