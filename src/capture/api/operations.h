// SPDX-License-Identifier: Apache-2.0
// What the functions of lockstep.h do: one record each, in the calling thread's log. Any thread.
#pragma once
#include "lockstep/lockstep.h"

namespace lockstep::capture::api {

// The handle, 0 when the operation is not recorded.
lockstep_op begin(const lockstep_op_info* info);
void end(lockstep_op op, const lockstep_gpu_times* times);
void set_gpu_times(lockstep_op op, const lockstep_gpu_times* times);
void step(int64_t number);
void mark(const char* name, int64_t value);
void count(lockstep_counter* counter);

}  // namespace lockstep::capture::api
