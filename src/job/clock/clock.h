// SPDX-License-Identifier: Apache-2.0
// Aligns the hosts' clocks by what collectives prove: no rank can leave an operation that needs everybody's
// data before the last one has entered it. With entered(x) no later than x truly entered, and left(x) no
// earlier than x truly left,
//   entered(b) - left(a) <= offset(b) - offset(a) <= left(b) - entered(a)
// holds for every pair of members of every such operation; rooted and point-to-point operations prove one
// side. The bounds of all operations are intersected over time: see model/host_clock.h for what comes out.
#pragma once
#include <vector>

#include "analysis/finding.h"
#include "model/job.h"

namespace lockstep::job::clock {

// Fills JobHost::clock and ::contradictions of a matched job. Hosts of one boot share a clock by definition.
// A contradiction (a stepped clock, a wrong match) is a finding; the interval then covers both sides of it.
void align(model::Job& job, std::vector<analysis::Finding>& findings);

}  // namespace lockstep::job::clock
