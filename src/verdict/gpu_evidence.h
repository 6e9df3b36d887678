// SPDX-License-Identifier: Apache-2.0
// What sampled counters of GPUs add to a diagnosis. A slowed clock, memory errors or a Xid of the GPU that a
// finding is about, in the time in question, is its likely cause and stands in that finding; so does a clock
// below that of the host's other GPUs. A late GPU whose clock was as theirs is said to be that. What no
// finding is about is one of its own: a GPU that was slowed down for long is a possible cause of a job that
// is slow as a whole, though nobody waited for that GPU alone.
#pragma once
#include <string_view>
#include <vector>

#include "links/judge/samples.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::verdict {

inline constexpr std::string_view kGpuCounters = "GPU counters";

// `hosts`: those of this run, none null.
void add_gpu_evidence(const std::vector<const links::HostSamples*>& hosts,
                      const std::vector<Evidence>& evidence, std::vector<analysis::Finding>& findings);

}  // namespace lockstep::verdict
