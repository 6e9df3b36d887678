// SPDX-License-Identifier: Apache-2.0
// The GPU that is current on the calling thread. Only libraries that are already in the process are asked;
// nothing is loaded for it. For init, not for the event path.
#pragma once
#include "capture/core/session/session.h"

namespace lockstep::capture::nccl {

void read_device(CommInfo* comm);
format::GpuClock gpu_clock();

}  // namespace lockstep::capture::nccl
