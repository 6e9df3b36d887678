// SPDX-License-Identifier: Apache-2.0
// What copies cost whose host memory is not pinned: reduced here, so that no job holds kernels.
#pragma once
#include "model/job.h"
#include "model/trace.h"

namespace lockstep::job::gather {

// Adds `pageable`. Nothing where the trace has no kernel that communicates, or no copy whose name says
// "Pageable", as CUPTI's kinds of memory are called. `strings`: the trace's, which may have left it.
void add_pageable_copies(const model::Trace& trace, const model::StringPool& strings,
                         model::JobProcess& process);

}  // namespace lockstep::job::gather
