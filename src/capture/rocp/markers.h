// SPDX-License-Identifier: Apache-2.0
// Ranges of roctx, as rocprofiler-sdk reports its calls, by the records of NVTX's. Any thread. Bounded:
// kMostStarted ranges that were started and not stopped; of others (counted) none is recorded.
#pragma once
#include "capture/rocp/sdk_abi.h"

namespace lockstep::capture::rocp {

inline constexpr uint32_t kMostStarted = 1024;

// The SDK's callback for roctx.
void on_marker(CallbackRecord record, uint64_t*, void*);

}  // namespace lockstep::capture::rocp
