// SPDX-License-Identifier: Apache-2.0
// Ranks that come late together, as all of a host do, wait for each other where they meet, and bring it along
// to where they meet others. There, all own time counts since they came as early as the others: what is too
// little to tell from jitter at one operation adds up over several. Of the lateness that it carries on
// (carried_lateness.h), a member is blamed once.
//
// Where all exchange with all in between, others wait for them there, and nobody is late where they meet: by
// how much shorter a member was in exchanges than the others counts as its lateness.
#pragma once
#include <vector>

#include "analysis/straggler/lateness/carried_lateness.h"
#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/lateness.h"

namespace lockstep::analysis::straggler {

// Less is what the jitter of many operations adds up to.
inline constexpr float kTogetherNs = 200'000;

// Of the members of a group, all of one pipeline stage, by GPU times: LateOp::together. By operation.
std::vector<LateOp> late_together(const model::Job& job, const std::vector<ExclusiveTimes>& times,
                                  const std::vector<MemberPast>& past, const CarriedLateness& carried);

}  // namespace lockstep::analysis::straggler
