// SPDX-License-Identifier: Apache-2.0
// What is wrong according to what NCCL_DEBUG logs say. Each row of rules.def is one thing that can be; every
// finding cites the lines that it follows from. Absence of a line proves little (levels and subsystems decide
// what is printed), so rules ask for what was said.
#pragma once
#include <vector>

#include "analysis/finding.h"
#include "readers/nccl_log/log_model.h"

namespace lockstep::analysis::log_rules {

// The findings, the most severe first, causes before consequences. At most one for each MESSAGE and RULE row.
std::vector<Finding> judge(const readers::nccl_log::LogModel& model);

}  // namespace lockstep::analysis::log_rules
