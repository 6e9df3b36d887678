// SPDX-License-Identifier: Apache-2.0
// Version 3 of the NCCL profiler plugin interface; see capture/nccl/abi.h.
#pragma once
#include "capture/nccl/abi/v1.h"
#include "capture/nccl/abi/v2.h"

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi {

namespace v3 {
// As in v2, without `traffic_bytes`.
struct Coll {
  const char* name;
  uint64_t comm_hash;
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  uint8_t max_channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
};
using P2p = v2::P2p;
// New in v3: KernelCh, still without times, and NetPlugin.
struct Descriptor {
  uint8_t type;
  void* parent;
  int32_t rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChV3 kernel_ch;
    NetPlugin net_plugin;
  };
};
using StateArgs = v1::StateArgs;
using Plugin = nccl_abi::Plugin<InitV1, Descriptor, StateArgs>;

static_assert(sizeof(Plugin) == 48);
static_assert(sizeof(Descriptor) == 120 && sizeof(Coll) == 96);
LOCKSTEP_NCCL_AT(Descriptor, coll, max_channels, 96);
LOCKSTEP_NCCL_AT(Descriptor, coll, algo, 104);
}  // namespace v3

}  // namespace lockstep::nccl_abi
// clang-format on
