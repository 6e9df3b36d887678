// SPDX-License-Identifier: Apache-2.0
// Ranges of roctx, as rocprofiler-sdk reports its calls, by the records of NVTX's. Any thread.
#pragma once
#include "capture/rocp/sdk_abi.h"

namespace lockstep::capture::rocp {

// The SDK's callback for roctx.
void on_marker(CallbackRecord record, uint64_t*, void*);

}  // namespace lockstep::capture::rocp
