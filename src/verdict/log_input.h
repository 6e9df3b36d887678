// SPDX-License-Identifier: Apache-2.0
// The logs of what a user named.
#pragma once
#include "base/result.h"
#include "readers/nccl_log/log_model.h"
#include "readers/reader.h"

namespace lockstep::verdict {

// Files of the format nccl_log. The model knows those that were packed by the names that the user knows.
Result<readers::nccl_log::LogModel> read_logs(const readers::Inputs& inputs,
                                              const readers::FormatFiles& files);

}  // namespace lockstep::verdict
