// SPDX-License-Identifier: Apache-2.0
// From the trace of one process to what it contributes to a job.
#pragma once
#include "model/process_part.h"
#include "model/trace.h"

namespace lockstep::job::gather {

using model::ProcessPart;

// Uses the trace up, which holds one process. Several may run side by side.
ProcessPart make_part(model::Trace&& trace);

}  // namespace lockstep::job::gather
