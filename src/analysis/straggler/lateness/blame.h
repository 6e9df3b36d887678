// SPDX-License-Identifier: Apache-2.0
// What a member is to blame for of an arrival that came late after more time of its own than the others': not
// what it brought along from before (carried_lateness.h), nor what its peers came late by as well
// (peer_comparison.h).
#pragma once
#include <cstddef>
#include <vector>

#include "analysis/straggler/lateness/carried_lateness.h"
#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/lateness/peer_comparison.h"

namespace lockstep::analysis::straggler {

struct Suspicion {
  size_t by = 0;     // position in the group
  LateOp late;       // blame_ns before anything is taken off
  float gpu_ns = 0;  // of its own time on the GPU, beyond that of the others
  // By which its segments (compute_segments.h) are longer than those of others of its stage; and if work went
  // on beside the operation before.
  float segments_ns = 0, overlapping_segments_ns = 0;
};

// `past`: of the group's members. `suspicions`: by operation. Returns those that remain, in their order.
std::vector<LateOp> assign_blame(const model::Job& job, const std::vector<ExclusiveTimes>& times,
                                 const MemberTable& table, const std::vector<MemberPast>& past,
                                 const std::vector<Suspicion>& suspicions);

}  // namespace lockstep::analysis::straggler
