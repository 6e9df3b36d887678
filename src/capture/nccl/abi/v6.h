// SPDX-License-Identifier: Apache-2.0
// Version 6 of the NCCL profiler plugin interface; see capture/nccl/abi.h.
#pragma once
#include "capture/nccl/abi/v5.h"

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi {

namespace v6 {
// New in v6: collectives by copy engines, without a kernel. `sync_strategy` is recorded where other
// collectives have their algorithm.
struct CeColl {
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  const char* sync_strategy;
  bool intra_batch_sync;
  uint32_t batch_size;
  uint32_t batches;
  uint32_t ce_seq;
  void* stream;
};
struct CeSync {
  bool is_complete;
  int32_t ranks;
};
// `ops` and `total_bytes` are of the whole batch.
struct CeBatch {
  int32_t ops;
  size_t total_bytes;
  bool use_intra_sync;
};
struct Descriptor {
  uint64_t type;
  void* parent;
  int32_t rank;
  union {
    v5::GroupApi group_api;
    v5::CollApi coll_api;
    v5::P2pApi p2p_api;
    v5::KernelLaunch kernel_launch;
    v5::Coll coll;
    v5::P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
    CeColl ce_coll;
    CeSync ce_sync;
    CeBatch ce_batch;
  };
};
using StateArgs = StateArgsV4;
using Plugin = nccl_abi::Plugin<InitV5, Descriptor, StateArgs>;

static_assert(sizeof(Plugin) == 48);
static_assert(sizeof(Descriptor) == 112 && sizeof(CeColl) == 88 && sizeof(CeSync) == 8 &&
              sizeof(CeBatch) == 24);
LOCKSTEP_NCCL_AT(Descriptor, ce_coll, sync_strategy, 80);
LOCKSTEP_NCCL_AT(Descriptor, ce_coll, batch_size, 92);
LOCKSTEP_NCCL_AT(Descriptor, ce_coll, stream, 104);
LOCKSTEP_NCCL_AT(Descriptor, ce_sync, ranks, 28);
LOCKSTEP_NCCL_AT(Descriptor, ce_batch, total_bytes, 32);
LOCKSTEP_NCCL_AT(Descriptor, ce_batch, use_intra_sync, 40);
}  // namespace v6

}  // namespace lockstep::nccl_abi
// clang-format on
