// SPDX-License-Identifier: Apache-2.0
// The header in a C99 translation unit; the other one, in C++11, has main().
#include "lockstep/lockstep.h"

int calls_from_c(int expect_loaded);

int calls_from_c(int expect_loaded) {
  const int32_t ranks[] = {0, 1};
  lockstep_group group = lockstep_declare_group("c:0", ranks, 2, 0);
  lockstep_gpu_times times = {sizeof(lockstep_gpu_times), LOCKSTEP_CLOCK_MONOTONIC, 1, 2};
  lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
  lockstep_op op = lockstep_begin(group, "allreduce", 4, 4, "Float", NULL);
  lockstep_end(op, &times);
  info.group = group;
  info.collective = "send";
  info.peer = 1;
  info.dtype = "Half";
  op = lockstep_begin_op(&info);
  lockstep_end(op, NULL);
  lockstep_set_gpu_times(op, &times);
  lockstep_step(1);
  lockstep_mark("checkpoint", 7);
  return lockstep_loaded() == expect_loaded && (group != 0) == expect_loaded && (op != 0) == expect_loaded;
}
