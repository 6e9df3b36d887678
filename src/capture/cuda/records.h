// SPDX-License-Identifier: Apache-2.0
// From CUPTI's records to ours. Called where CUPTI delivers a buffer, on a thread of CUPTI's or one that flushes; each
// writes to its own log.
#pragma once
#include "capture/cuda/cupti_abi.h"
#include "capture/cuda/cupti_clock.h"

namespace lockstep::capture::cuda {

inline constexpr uint32_t kLaunchCalls[] = {cupti::kLaunchKernel,      cupti::kLaunchKernelPtsz,
                                            cupti::kLaunchCooperative, cupti::kLaunchCooperativePtsz,
                                            cupti::kGraphLaunch,       cupti::kGraphLaunchPtsz,
                                            cupti::kLaunchKernelEx,    cupti::kLaunchKernelExPtsz};
// Place of a call in kLaunchCalls, -1 if it is none of them.
int launch_call_index(uint32_t call);

// Writes kernels, launch calls and copies; other kinds are not ours. `system_thread_ids`: how calls name their thread.
void write_record(const cupti::Record& record, CuptiClock& clock, bool system_thread_ids);

}  // namespace lockstep::capture::cuda
