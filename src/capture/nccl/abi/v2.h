// SPDX-License-Identifier: Apache-2.0
// Version 2 of the NCCL profiler plugin interface; see capture/nccl/abi.h.
#pragma once
#include "capture/nccl/abi/v1.h"

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi {

namespace v2 {
// Since v2 names are texts: those that common.h has for v1's codes.
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
  size_t traffic_bytes;
  uint8_t max_channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
};
struct P2p {
  const char* name;
  uint64_t comm_hash;
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
};
// The events are those of v1.
struct Descriptor {
  uint8_t type;
  void* parent;
  int32_t rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};
using StateArgs = v1::StateArgs;
using Plugin = nccl_abi::Plugin<InitV1, Descriptor, StateArgs>;

static_assert(sizeof(Plugin) == 48);
static_assert(sizeof(Descriptor) == 128 && sizeof(Coll) == 104 && sizeof(P2p) == 56);
LOCKSTEP_NCCL_AT(Descriptor, coll, datatype, 88);
LOCKSTEP_NCCL_AT(Descriptor, coll, max_channels, 104);
LOCKSTEP_NCCL_AT(Descriptor, coll, algo, 112);
LOCKSTEP_NCCL_AT(Descriptor, coll, proto, 120);
}  // namespace v2

}  // namespace lockstep::nccl_abi
// clang-format on
