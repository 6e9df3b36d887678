// SPDX-License-Identifier: Apache-2.0
// What is wrong according to snapshots of NCCL's RAS subsystem. Each row of rules.def is one thing that can
// be.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "readers/ras/ras_model.h"

namespace lockstep::analysis::ras_rules {

// The findings of the last snapshot of each job, the most severe first, causes before consequences. What is
// wrong with the same ranks in several communicators is one finding. Those of other jobs than the newest are
// notes.
// Empty for a model without snapshots.
std::vector<Finding> judge(const readers::ras::RasModel& model);
// Ranks of the job that answered in the last snapshot, with their hosts; of several jobs the newest's.
std::map<int32_t, std::string> hosts(const readers::ras::RasModel& model);

}  // namespace lockstep::analysis::ras_rules
