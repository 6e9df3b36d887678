// SPDX-License-Identifier: Apache-2.0
// Log files by name.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "readers/nccl_log/log_model.h"

namespace lockstep::readers::nccl_log {

// An error: a file that cannot be read.
Result<LogModel> read_logs(const std::vector<std::string>& paths);

}  // namespace lockstep::readers::nccl_log
