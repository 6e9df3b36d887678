// SPDX-License-Identifier: Apache-2.0
// The GPU that is current on the calling thread, and the NCCL or RCCL that is loaded. Only libraries that are already
// in the process are asked; nothing is loaded for it. For init, not for the event path.
#pragma once
#include <cstdint>

#include "capture/core/session.h"

namespace lockstep::capture::nccl {

void read_device(CommInfo* comm);
// ncclGetVersion's number; 0 if no library can be asked.
uint32_t read_nccl_version();
format::GpuClock gpu_clock();

}  // namespace lockstep::capture::nccl
