// SPDX-License-Identifier: Apache-2.0
// Ring retention: statistics per (comm, function and types, size bucket) that outlive the records
// (HistogramCell). Operations are counted in the log of the thread that enqueued them, durations in the log
// of the thread that saw the kernel stop; a reader adds the cells up. Which operation a kernel belongs to is
// looked up in a small table of recent operations; when it has been pushed out, the duration is not counted
// (`timed` says how many were).
#pragma once
#include <cstdint>

#include "capture/core/log/thread_log.h"

namespace lockstep::capture::nccl {

// `kind`: kColl or kP2p, however short the record is.
void count_operation(ThreadLog* log, uint64_t handle, format::Kind kind, uint32_t comm, ShapeRef shape,
                     uint64_t count, uint64_t ticks);
// Of a KernelCh whose GPU times are there, in ns; AMD's ticks are not counted.
void count_duration(ThreadLog* log, const format::KernelChRecord* kernel);

}  // namespace lockstep::capture::nccl
