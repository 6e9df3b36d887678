// SPDX-License-Identifier: Apache-2.0
// What a member is to blame for of an arrival that came late after more time of its own than the others': not what it
// brought along from before (carry.h), nor what its company came late by as well (company.h).
#pragma once
#include <cstddef>
#include <vector>

#include "analysis/straggler/lateness/carry.h"
#include "analysis/straggler/lateness/company.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/lateness/own_times.h"

namespace lockstep::analysis::straggler {

struct Suspicion {
  size_t by = 0;      // position in the group
  LateOp late;        // blame_ns before anything is taken off
  float legs_ns = 0;  // by which its legs (legs.h) are longer than those of others of its stage
};

// `past`: of the group's members. `suspicions`: by operation. Returns those that remain, in their order.
std::vector<LateOp> settle(const model::Job& job, const std::vector<OwnTimes>& times, const Seats& seats,
                           const std::vector<MemberPast>& past, const std::vector<Suspicion>& suspicions);

}  // namespace lockstep::analysis::straggler
