// SPDX-License-Identifier: Apache-2.0
// What RCCL has in version 6 of the interface beside NCCL's (from ROCm 10.1 on), under the same names and in
// the same places: diagnoses of network operations, for its proxy-trace plugin. Layouts are those of its
// public headers; see capture/nccl/abi.h.
//
//                  NCCL v6     RCCL v6                          NCCL v7
//   mask bit 15    unused      ProxyDiag: no event of its own   KernelPhase, an event
//   state 31       unused      of a ProxyOp, any number of      KernelPhaseStop
//   arguments      8 bytes     24 bytes, also of other states   8 bytes
//   ProxyOp        24 bytes    64 bytes, 0 without bit 15       24 bytes
//
// Nothing at run time tells which of the two calls a v6 callback, and nothing has to: we ask for no
// diagnoses, read only what both have, and pass a plugin of v6 RCCL's own pointers.
#pragma once
#include "capture/nccl/abi/v6.h"

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi::rccl_v6 {

inline constexpr uint64_t kTypeProxyDiag = 0x8000;
inline constexpr State kProxyDiagUpdate = static_cast<State>(31);

// Only the members up to `is_send` are read here: those behind are 0, or not there at all where NCCL calls.
struct ProxyOp {
  int32_t pid;
  uint8_t channel;
  int32_t peer;
  int32_t steps;
  int32_t chunk_size;
  int32_t is_send;
  uint64_t comm_hash;
  int64_t op_count;
  int32_t func;
  int32_t protocol;
  int32_t pattern;
  uint32_t total_bytes;
  uint32_t proxy_bytes;
  int32_t raw_steps;
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
    v6::CeColl ce_coll;
    v6::CeSync ce_sync;
    v6::CeBatch ce_batch;
  };
};
// Passed on to a chained plugin as it is, never read.
struct ProxyDiag {
  uint8_t kind;
  uint8_t reserved;
  uint16_t flags;
  int64_t value;
  int64_t value2;
};
struct StateArgs {
  union {
    StateArgsV4 nccl;
    ProxyDiag proxy_diag;
  };
};
using Plugin = nccl_abi::Plugin<InitV5, Descriptor, StateArgs>;

// A copy of NCCL's descriptor is a copy of RCCL's.
static_assert(sizeof(Descriptor) == sizeof(v6::Descriptor) && sizeof(Plugin) == sizeof(v6::Plugin));
static_assert(sizeof(StateArgs) == 24 && sizeof(ProxyOp) == 64);
LOCKSTEP_NCCL_AT(Descriptor, proxy_op, is_send, 44);
LOCKSTEP_NCCL_AT(Descriptor, proxy_op, comm_hash, 48);
LOCKSTEP_NCCL_AT(Descriptor, proxy_op, func, 64);
LOCKSTEP_NCCL_AT(Descriptor, proxy_op, raw_steps, 84);
static_assert(offsetof(ProxyDiag, flags) == 2 && offsetof(ProxyDiag, value) == 8);
// What NCCL's v7 has in their places.
static_assert(kTypeProxyDiag == kTypeKernelPhase && kProxyDiagUpdate == kKernelPhaseStop);

}  // namespace lockstep::nccl_abi::rccl_v6
// clang-format on
