// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "model/job.h"

namespace lockstep::analysis::testing {

// Leaves of a job what was there at that instant, ns on each host's own clock, while it ran: operations that had been called,
// with the GPU times of those that had ended.
void cut_at(model::Job& job, int64_t ns);

}  // namespace lockstep::analysis::testing
