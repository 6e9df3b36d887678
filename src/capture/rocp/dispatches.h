// SPDX-License-Identifier: Apache-2.0
// The event path: rocprofiler-sdk calls when a kernel is put on a queue, on the launching thread, and when it
// has ended, on a thread of the runtime's. No lock, allocation or system call of ours, but a thread's first
// event (capture/core/log/thread_log.h); what the SDK itself does there is its own. Any thread.
#pragma once
#include "capture/core/session/control.h"
#include "capture/rocp/sdk_abi.h"

namespace lockstep::capture::rocp {

inline constexpr uint32_t kMostQueues = 256;

void record_mode(const Recording& recording);
// The SDK's callback for kernels.
void on_dispatch(CallbackRecord record, uint64_t* own, void*);
// Defines queues that were seen since the last time, and the counters if they have changed. One thread at a
// time.
void define_queues();
void write_counters();
// What it wrote last.
const uint64_t* written_counters();

}  // namespace lockstep::capture::rocp
