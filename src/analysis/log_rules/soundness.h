// SPDX-License-Identifier: Apache-2.0
// What of logs can be believed. In a file that was damaged, numbers and names may be others than were
// written, and lines are missing. Trouble that it mentions was there all the same; what it says of how NCCL
// was set up is not compared with others.
#pragma once
#include "readers/nccl_log/log_model.h"

namespace lockstep::analysis::log_rules {

bool has_damage(const readers::nccl_log::LogModel& model);
// Without what damaged files say, but for warnings, errors, and what PyTorch and launchers say.
readers::nccl_log::LogModel without_damaged(const readers::nccl_log::LogModel& model);

}  // namespace lockstep::analysis::log_rules
