// SPDX-License-Identifier: Apache-2.0
// Version 4 of the NCCL profiler plugin interface; see capture/nccl/abi.h.
#pragma once
#include "capture/nccl/abi/common.h"

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi {

namespace v4 {
// Since v4 init tells name and hash of the communicator. `count` is as in v1. `channels` was `max_channels`
// before.
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
};
// `channels` is left uninitialised by the adapters of newer releases.
struct P2p {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
  uint8_t channels;
};
// New in v4: GPU times of KernelCh, and states 19 and 20.
struct Descriptor {
  uint8_t type;
  void* parent;
  int32_t rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
  };
};
using StateArgs = StateArgsV4;
using Plugin = nccl_abi::Plugin<InitV4, Descriptor, StateArgs>;

static_assert(sizeof(Plugin) == 48);
static_assert(sizeof(Descriptor) == 104 && sizeof(Coll) == 80 && sizeof(P2p) == 40);
LOCKSTEP_NCCL_AT(Descriptor, coll, seq, 24);
LOCKSTEP_NCCL_AT(Descriptor, coll, datatype, 72);
LOCKSTEP_NCCL_AT(Descriptor, coll, algo, 88);
LOCKSTEP_NCCL_AT(Descriptor, p2p, peer, 56);
LOCKSTEP_NCCL_AT(Descriptor, p2p, channels, 60);
LOCKSTEP_NCCL_AT(Descriptor, kernel_ch, ptimer, 32);
}  // namespace v4

}  // namespace lockstep::nccl_abi
// clang-format on
