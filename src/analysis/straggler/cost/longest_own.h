// SPDX-License-Identifier: Apache-2.0
// Who works longest between communication: a rank, or all ranks of a host, whose own time in a step exceeds
// that of everybody else.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/straggler/cost/delay_cost.h"
#include "analysis/straggler/cost/pattern.h"
#include "analysis/straggler/cost/resampling.h"
#include "analysis/straggler/cost/scattered.h"
#include "analysis/straggler/lateness/exclusive_times.h"

namespace lockstep::analysis::straggler {

struct LongestOwn {
  std::vector<uint32_t> processes;  // one, or all of one host
  Pattern pattern;                  // kNone: in single steps, Pattern::late, that are no habit
  // In the pattern's steps, ns: own time beyond that of everybody else, and no more than beyond its own usual
  // steps where there are such. The others lose no more by it, and less where their hosts run ahead
  // meanwhile.
  Interval lead;
  double per_step_ns = 0;  // median of the late steps
  double host_share = 0;   // of what it works longer, the host's between calls
  uint32_t op = 0;         // the first of the first late step, of processes.front(): position in JobOps
};

struct OwnLeads {
  std::vector<LongestOwn> longest;  // the longest first
  // If there is none: one rank leads in nearly all that anybody leads by, in too few steps to tell a habit
  // from chance.
  std::optional<Turns> seldom;
};

enum class Among : uint8_t { kRanks, kHosts };
// `times`: by process. Needs GPU times: a host does not show how long its GPU works.
OwnLeads longest_own(const model::Job& job, const DelayCost& costs, std::span<const ExclusiveTimes> times,
                     Among among);

}  // namespace lockstep::analysis::straggler
