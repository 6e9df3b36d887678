// SPDX-License-Identifier: Apache-2.0
// As much of NCCL as the examples call: communicators and calls reach the profiler plugin, and nothing is
// communicated.
#pragma once
#include <cstddef>

#include "cuda_runtime.h"

enum ncclResult_t { ncclSuccess, ncclInvalidUsage };
enum ncclDataType_t { ncclFloat };
enum ncclRedOp_t { ncclSum };
struct ncclUniqueId {
  char internal[128];
};
struct ncclComm;
using ncclComm_t = ncclComm*;

const char* ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream);
