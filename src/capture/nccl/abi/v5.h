// SPDX-License-Identifier: Apache-2.0
// Version 5 of the NCCL profiler plugin interface; see capture/nccl/abi.h.
#pragma once
#include "capture/nccl/abi/common.h"

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi {

namespace v5 {
// New in v5: what the program calls, beside what NCCL makes of it. `depth` is as NCCL counts nested groups.
struct GroupApi {
  bool graph_captured;
  int32_t depth;
};
// `count` is in elements as the program passed them, also for AllGather and Broadcast. `stream` is a
// pointer's value.
struct CollApi {
  const char* func;
  size_t count;
  const char* datatype;
  int32_t root;
  void* stream;
  bool graph_captured;
};
// Who the peer is, the P2p event says.
struct P2pApi {
  const char* func;
  size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
};
struct KernelLaunch {
  void* stream;
};
// `parent` of the descriptor is the CollApi now; `parent_group` is the handle of the Group, the kernel plan.
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
};
struct P2p {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
  uint8_t channels;
  void* parent_group;
};
// `type` is eight bytes wide from here on.
struct Descriptor {
  uint64_t type;
  void* parent;
  int32_t rank;
  union {
    GroupApi group_api;
    CollApi coll_api;
    P2pApi p2p_api;
    KernelLaunch kernel_launch;
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
  };
};
using StateArgs = StateArgsV4;
using Plugin = nccl_abi::Plugin<InitV5, Descriptor, StateArgs>;

static_assert(sizeof(Plugin) == 48 && offsetof(Plugin, init) == 8 && offsetof(Plugin, finalize) == 40);
static_assert(sizeof(Descriptor) == 112 && sizeof(Coll) == 88 && sizeof(P2p) == 48 && sizeof(CollApi) == 48 &&
              sizeof(P2pApi) == 40);
static_assert(offsetof(Descriptor, parent) == 8 && offsetof(Descriptor, rank) == 16);
LOCKSTEP_NCCL_AT(Descriptor, group_api, depth, 28);
LOCKSTEP_NCCL_AT(Descriptor, coll_api, stream, 56);
LOCKSTEP_NCCL_AT(Descriptor, coll_api, graph_captured, 64);
LOCKSTEP_NCCL_AT(Descriptor, p2p_api, graph_captured, 56);
LOCKSTEP_NCCL_AT(Descriptor, coll, parent_group, 104);
LOCKSTEP_NCCL_AT(Descriptor, p2p, parent_group, 64);
}  // namespace v5

}  // namespace lockstep::nccl_abi
// clang-format on
