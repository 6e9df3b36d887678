// SPDX-License-Identifier: Apache-2.0
// Version 7 of the NCCL profiler plugin interface; see capture/nccl/abi.h.
#pragma once
#include "capture/nccl/abi/v5.h"
#include "capture/nccl/abi/v6.h"

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi {

namespace v7 {
// `user_tag`: what the program gave NCCL for the operation; 0 none. So in all of them.
struct CollApi {
  const char* func;
  size_t count;
  const char* datatype;
  int32_t root;
  void* stream;
  bool graph_captured;
  uint64_t user_tag;
};
struct P2pApi {
  const char* func;
  size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
  uint64_t user_tag;
};
// New in v7: operations on symmetric memory, whose kernel variant is recorded as their algorithm.
struct Coll {
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
  void* parent_group;
  const char* kernel_variant;
  bool is_symmetric;
  uint64_t user_tag;
};
struct P2p {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
  uint8_t channels;
  void* parent_group;
  uint64_t user_tag;
};
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
  uint64_t user_tag;
};
// New in v7: a part of a channel's GPU work. `ptimer` as in KernelCh: the begin; the end comes with state 31.
struct KernelPhase {
  uint8_t channel;
  uint8_t phase;
  const char* phase_name;
  uint64_t ptimer;
};
struct Descriptor {
  uint64_t type;
  void* parent;
  int32_t rank;
  union {
    v5::GroupApi group_api;
    CollApi coll_api;
    P2pApi p2p_api;
    v5::KernelLaunch kernel_launch;
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
    CeColl ce_coll;
    v6::CeSync ce_sync;
    v6::CeBatch ce_batch;
    KernelPhase kernel_phase;
  };
};
using StateArgs = StateArgsV4;
using Plugin = nccl_abi::Plugin<InitV5, Descriptor, StateArgs>;

static_assert(sizeof(Plugin) == 48);
static_assert(sizeof(Descriptor) == 136);
LOCKSTEP_NCCL_AT(Descriptor, coll_api, user_tag, 72);
LOCKSTEP_NCCL_AT(Descriptor, p2p_api, user_tag, 64);
LOCKSTEP_NCCL_AT(Descriptor, coll, kernel_variant, 112);
LOCKSTEP_NCCL_AT(Descriptor, coll, is_symmetric, 120);
LOCKSTEP_NCCL_AT(Descriptor, coll, user_tag, 128);
LOCKSTEP_NCCL_AT(Descriptor, p2p, user_tag, 72);
LOCKSTEP_NCCL_AT(Descriptor, ce_coll, user_tag, 112);
LOCKSTEP_NCCL_AT(Descriptor, kernel_phase, phase_name, 32);
LOCKSTEP_NCCL_AT(Descriptor, kernel_phase, ptimer, 40);
}  // namespace v7

}  // namespace lockstep::nccl_abi
// clang-format on
