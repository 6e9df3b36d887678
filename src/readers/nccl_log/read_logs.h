// SPDX-License-Identifier: Apache-2.0
// Log files by name: plain or gzip, and directories of them.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "readers/nccl_log/log_model.h"

namespace lockstep::readers::nccl_log {

// Reads every named file, and those files of every named directory (not of folders in it) that say NCCL, or what
// launchers say of processes that end, in their first kSniffBytes. An error: a name that cannot be read, or not one line
// of NCCL, PyTorch's watchdogs or a launcher in all of them.
inline constexpr size_t kSniffBytes = 1 << 20;
Result<LogModel> read_logs(const std::vector<std::string>& paths);

}  // namespace lockstep::readers::nccl_log
