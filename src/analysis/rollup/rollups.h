// SPDX-License-Identifier: Apache-2.0
// A job as sums a minute: what stays of a run where many are kept. Lateness and blame are those of
// straggler/lateness, bandwidths those of analysis/bandwidth/rates.h.
#pragma once
#include <vector>

#include "model/job.h"
#include "model/rollup.h"

namespace lockstep::analysis::rollup {

// By process, and of each in order of minute, communicator and what the operations are. The job is matched
// and its clocks are aligned. Minutes of a host that is not aligned are those of its own clock. Cost is
// linear in operations.
std::vector<model::Rollup> rollups(const model::Job& job);

}  // namespace lockstep::analysis::rollup
