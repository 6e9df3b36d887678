// SPDX-License-Identifier: Apache-2.0
// Since when the begin of an operation's GPU work is reported while it runs.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace lockstep::job::gather {

// For JobOps::gpu_reported_from_ns, in RunNs. `modes` is the process' text of what was recorded when;
// `bucket` says, for each operation of the trace, with which others it lies in the order of their calls,
// kNoRow with none. KernelCh events show that work begins; from the first on, if they are still asked for and
// no operation in between went without them.
int64_t starts_reported_from(const model::Trace& trace, std::string_view modes,
                             const std::vector<uint32_t>& bucket, size_t buckets);

}  // namespace lockstep::job::gather
