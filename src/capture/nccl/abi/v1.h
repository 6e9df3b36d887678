// SPDX-License-Identifier: Apache-2.0
// Version 1 of the NCCL profiler plugin interface; see capture/nccl/abi.h.
#pragma once
#include "capture/nccl/abi/common.h"

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi {

namespace v1 {
// What it is comes as codes, whose texts are in common.h. `count` is in elements of `datatype`, for AllGather
// and Broadcast in bytes. Buffers are addresses and never followed. Of `op`, `traffic_bytes` and the two
// flags at the end nothing is recorded.
struct Coll {
  const char* name;
  uint64_t comm_hash;
  uint64_t seq;
  uint8_t func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  uint8_t datatype;
  uint32_t op;
  size_t traffic_bytes;
  uint8_t max_channels;
  uint8_t warps;
  uint8_t algo;
  uint8_t proto;
  int32_t is_collnet;
  int32_t is_nvls;
};
// `peer` is a rank of the communicator. Up to v3, `name` and `comm_hash` of each operation are all that is
// said of its communicator: init says nothing.
struct P2p {
  const char* name;
  uint64_t comm_hash;
  uint8_t func;
  void* buffer;
  uint8_t datatype;
  size_t count;
  int32_t peer;
};
// `type` is one bit of the event types; up to v4 it is one byte wide, so API events do not fit. `parent` is a
// handle of ours, of another process (PXN), or NULL. `rank`: in the communicator.
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
// Up to v3 states 0 to 7 report every step of a ProxyOp: bytes and steps so far.
struct StateArgs {
  union {
    struct {
      size_t trans_size;
      int32_t steps;
    } proxy_op;
    struct {
      int32_t appended;
    } proxy_ctrl;
  };
};
using Plugin = nccl_abi::Plugin<InitV1, Descriptor, StateArgs>;

static_assert(sizeof(Plugin) == 48);
static_assert(sizeof(Descriptor) == 120 && sizeof(Coll) == 96 && sizeof(P2p) == 56 &&
              sizeof(StateArgs) == 16);
static_assert(offsetof(Descriptor, parent) == 8 && offsetof(Descriptor, rank) == 16);
LOCKSTEP_NCCL_AT(Descriptor, coll, name, 24);
LOCKSTEP_NCCL_AT(Descriptor, coll, func, 48);
LOCKSTEP_NCCL_AT(Descriptor, coll, send_buffer, 56);
LOCKSTEP_NCCL_AT(Descriptor, coll, count, 72);
LOCKSTEP_NCCL_AT(Descriptor, coll, datatype, 84);
LOCKSTEP_NCCL_AT(Descriptor, coll, op, 88);
LOCKSTEP_NCCL_AT(Descriptor, coll, traffic_bytes, 96);
LOCKSTEP_NCCL_AT(Descriptor, coll, max_channels, 104);
LOCKSTEP_NCCL_AT(Descriptor, coll, proto, 107);
LOCKSTEP_NCCL_AT(Descriptor, coll, is_nvls, 112);
LOCKSTEP_NCCL_AT(Descriptor, p2p, func, 40);
LOCKSTEP_NCCL_AT(Descriptor, p2p, datatype, 56);
LOCKSTEP_NCCL_AT(Descriptor, p2p, count, 64);
LOCKSTEP_NCCL_AT(Descriptor, p2p, peer, 72);
LOCKSTEP_NCCL_AT(Descriptor, proxy_op, pid, 24);
LOCKSTEP_NCCL_AT(Descriptor, proxy_op, channel, 28);
LOCKSTEP_NCCL_AT(Descriptor, proxy_op, is_send, 44);
}  // namespace v1

}  // namespace lockstep::nccl_abi
// clang-format on
