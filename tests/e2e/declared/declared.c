/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the operations of declared_test.cc through the C API. */
#define _POSIX_C_SOURCE 199309L
#include <time.h>

#include "lockstep/lockstep.h"

static lockstep_group declare(const char* name, const char* description, int32_t start, int32_t stride,
                              int32_t count) {
  lockstep_group_info info = LOCKSTEP_GROUP_INFO_INIT;
  info.name = name;
  info.description = description;
  info.start = start;
  info.stride = stride;
  info.count = count;
  info.rank = 0;
  return lockstep_declare_group_info(&info);
}

static void run(lockstep_group group, const char* collective, const char* dtype, uint64_t in, uint64_t out,
                int64_t seq, uint32_t flags) {
  lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
  info.group = group;
  info.collective = collective;
  info.dtype = dtype;
  info.in_count = in;
  info.out_count = out;
  info.seq = seq;
  info.flags = flags;
  lockstep_end(lockstep_begin_op(&info), NULL);
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(void) {
  static const int32_t irregular[] = {0, 1, 3};
  const int64_t in_split[] = {4, 12, 8, 16}, out_split[] = {24, 0, 20, 4};
  int64_t many[40];
  const lockstep_group custom = declare("aiter_custom_ar", NULL, 0, 1, 2);
  lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
  lockstep_gpu_times times = {sizeof(lockstep_gpu_times), LOCKSTEP_CLOCK_MONOTONIC, 0, 0};
  int i;
  for (i = 0; i < 40; ++i) many[i] = i;

  run(custom, "reduce_scatter", "Half", 1048576, 524288, 5, LOCKSTEP_OP_SYNC);
  run(declare("3", "mesh_tp", 0, 2, 2), "all_gather", "BFloat16", 524288, 1048576, 6, LOCKSTEP_OP_ASYNC);
  info.group = declare("0", "default_pg", 0, 1, 4);
  info.collective = "all_to_allv";
  info.dtype = "Float";
  info.in_count = 40;
  info.out_count = 48;
  info.seq = 7;
  info.in_split = in_split;
  info.out_split = out_split;
  info.in_splits = info.out_splits = 4;
  times.start = now();
  times.end = times.start + 1000;
  lockstep_end(lockstep_begin_op(&info), &times);
  run(lockstep_declare_group("experts", irregular, 3, 0), "allreduce", "Float", 256, 256, 1, 0);
  info = (lockstep_op_info)LOCKSTEP_OP_INFO_INIT;
  info.group = declare("1", "mesh_pp", 0, 2, 2);
  info.collective = "send";
  info.dtype = "Half";
  info.in_count = info.out_count = 4096;
  info.peer = 1;
  info.seq = 1;
  info.flags = LOCKSTEP_OP_P2P | LOCKSTEP_OP_ASYNC;
  lockstep_end(lockstep_begin_op(&info), NULL);
  run(custom, "fused_allreduce_rmsnorm", "BFloat16", 64, 64, 0, 0);
  info = (lockstep_op_info)LOCKSTEP_OP_INFO_INIT;
  info.group = declare("9", "wide", 0, 1, 40);
  info.collective = "all_to_allv";
  info.dtype = "Int";
  info.in_count = info.out_count = 780;
  info.seq = 1;
  info.in_split = info.out_split = many;
  info.in_splits = info.out_splits = 40;
  lockstep_end(lockstep_begin_op(&info), NULL);
  return 0;
}
