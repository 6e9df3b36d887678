// SPDX-License-Identifier: Apache-2.0
// The GPU that is current on the calling thread. Only libraries that are already in the process are asked;
// nothing is loaded for it. For init, not for the event path.
#pragma once
#include "capture/core/session/session.h"

namespace lockstep::capture::nccl {

// Fills device, pci and uuid; left as they are where no library of CUDA or HIP is loaded or it does not
// answer.
void read_device(CommInfo* comm);
// Which clock raw GPU times of this process are on: AMD's ticks where RCCL, HIP or HSA is loaded, else
// NVIDIA's ns.
format::GpuClock gpu_clock();

}  // namespace lockstep::capture::nccl
