// SPDX-License-Identifier: Apache-2.0
// What NCCL, PyTorch's watchdog and launchers' reports of ends print, wherever it stands in a text:
// read_logs.h reads it.
#pragma once
#include "readers/reader.h"

namespace lockstep::readers::nccl_log {

extern const Format kFormat;

}  // namespace lockstep::readers::nccl_log
