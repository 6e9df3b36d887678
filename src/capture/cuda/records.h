// SPDX-License-Identifier: Apache-2.0
// From CUPTI's records to ours. Called where CUPTI delivers a buffer, on a thread of CUPTI's or one that
// flushes; each writes to its own log.
#pragma once
#include "capture/cuda/cupti_abi.h"
#include "capture/cuda/cupti_clock.h"

namespace lockstep::capture::cuda {

// The calls of the driver by which NCCL launches, and graphs are launched. cuLaunchKernel is the call of most
// other kernels, thousands a second; NCCL takes it where the driver is older than CUDA 11.8.
inline constexpr uint32_t kLaunchCalls[] = {cupti::kLaunchKernelEx, cupti::kLaunchKernelExPtsz,
                                            cupti::kGraphLaunch,    cupti::kGraphLaunchPtsz,
                                            cupti::kLaunchKernel,   cupti::kLaunchKernelPtsz};
inline constexpr uint32_t kLaunchCallsOfNewDrivers = 4;  // the first of them
// Whether a call is one of the first `calls` of kLaunchCalls.
bool is_launch_call(uint32_t call, uint32_t calls);

struct WhatToWrite {
  uint32_t calls;  // the first so many of kLaunchCalls
  bool copies;
  bool system_thread_ids;  // how calls name their thread
};
// Writes kernels, launch calls and, if asked for, copies; other records are not ours.
void write_record(const cupti::Record& record, CuptiClock& clock, WhatToWrite what);

}  // namespace lockstep::capture::cuda
