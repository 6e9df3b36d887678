// SPDX-License-Identifier: Apache-2.0
// Ring retention: statistics per (group, collective and types, size bucket) that outlive the records
// (HistogramCell). Durations are host time from begin to end, of operations that end on the thread that began
// them.
#pragma once
#include <cstdint>

#include "capture/core/log/thread_log.h"

namespace lockstep::capture::api {

void count_operation(ThreadLog* log, const format::ApiOpRecord* record, uint64_t op);
void count_duration(ThreadLog* log, const format::ApiOpRecord* record, uint64_t op, uint64_t now);

}  // namespace lockstep::capture::api
