// SPDX-License-Identifier: Apache-2.0
// What a plugin of another version of the interface gets of an event: as NCCL's own adapters give it, but
// what such a version leaves uninitialised is 0. Between versions 5, 6 and 7 also upwards, where only fields
// are missing that may be empty.
#pragma once
#include <string.h>

#include "capture/nccl/abi.h"
#include "capture/nccl/shim.h"

namespace lockstep::capture::nccl {

// Where NCCL uses `from`, whether a plugin of version `to` can be told of an event or a state, and means
// the same by its number: RCCL's v6 has some of its own, which are NCCL's of v7 (capture/nccl/abi/rccl.h).
constexpr bool knows_event(int from, int to, uint64_t type) {
  return (type & ~uint64_t{nccl_abi::kKnownTypes[from < to ? from : to]}) == 0;
}

constexpr bool knows_state(int from, int to, int state) {
  if (to <= 3) return state >= nccl_abi::kProxyStepSendGpuWait && state <= nccl_abi::kProxyCtrlAppendEnd;
  if (state < nccl_abi::kProxyStepSendGpuWait) return false;
  if (to == 4) return state <= nccl_abi::kKernelChStop;
  return state <= nccl_abi::kGroupEndApiStart ||
         (from >= 7 && to >= 7 && state == nccl_abi::kKernelPhaseStop);
}

// v1 carries numbers, and has one for what it does not know.
template <size_t N>
uint8_t code_of(const char* name, const char* const (&names)[N], uint8_t known, uint8_t unknown) {
  for (uint8_t i = 0; name != nullptr && i < known; ++i)
    if (strcmp(names[i], name) == 0) return i;
  return unknown;
}
inline uint8_t func_code(const char* name) { return code_of(name, nccl_abi::kFuncNames, 8, /*Send*/ 6); }
inline uint8_t datatype_code(const char* name) {
  return code_of(name, nccl_abi::kDatatypeNames, 10, /*float64*/ 8);
}
inline uint8_t algo_code(const char* name) { return code_of(name, nccl_abi::kAlgoNames, 7, /*PAT*/ 6); }
inline uint8_t proto_code(const char* name) { return code_of(name, nccl_abi::kProtoNames, 3, /*SIMPLE*/ 2); }

// Where both versions have the field.
#define LOCKSTEP_COPY(field)  \
  if constexpr (requires {    \
                  from.field; \
                  to->field;  \
                })            \
  to->field = from.field

template <class From, class To>
// `to` has codes (v1) or texts; `from` has texts: where NCCL uses v1, the chained plugin does, too.
void translate_names(const From& from, To* to) {
  if constexpr (sizeof(to->func) == 1) {
    to->func = func_code(from.func);
    to->datatype = datatype_code(from.datatype);
    if constexpr (requires { to->algo; }) {
      to->algo = algo_code(from.algo);
      to->proto = proto_code(from.proto);
    }
  } else {
    to->func = from.func;
    to->datatype = from.datatype;
    LOCKSTEP_COPY(algo);
    LOCKSTEP_COPY(proto);
  }
}

// Coll, P2p, CollApi, P2pApi and CeColl: the fields that both versions have.
template <class From, class To>
void translate_operation(const From& from, To* to) {
  translate_names(from, to);
  LOCKSTEP_COPY(name);
  LOCKSTEP_COPY(comm_hash);
  LOCKSTEP_COPY(seq);
  LOCKSTEP_COPY(send_buffer);
  LOCKSTEP_COPY(recv_buffer);
  LOCKSTEP_COPY(buffer);
  LOCKSTEP_COPY(count);
  LOCKSTEP_COPY(root);
  LOCKSTEP_COPY(peer);
  LOCKSTEP_COPY(traffic_bytes);
  LOCKSTEP_COPY(channels);
  LOCKSTEP_COPY(max_channels);
  if constexpr (requires {
                  from.channels;
                  to->max_channels;
                })
    to->max_channels = from.channels;
  LOCKSTEP_COPY(warps);
  LOCKSTEP_COPY(parent_group);
  LOCKSTEP_COPY(stream);
  LOCKSTEP_COPY(graph_captured);
  LOCKSTEP_COPY(kernel_variant);
  LOCKSTEP_COPY(is_symmetric);
  LOCKSTEP_COPY(user_tag);
  LOCKSTEP_COPY(sync_strategy);
  LOCKSTEP_COPY(intra_batch_sync);
  LOCKSTEP_COPY(batch_size);
  LOCKSTEP_COPY(batches);
  LOCKSTEP_COPY(ce_seq);
}

template <class From, class To>
// Events that v1 does not have, where both versions have them; else `to` stays zero.
void translate_newer(const From& from, To* to) {
  switch (uint64_t{from.type}) {
    case nccl_abi::kTypeKernelCh:
      if constexpr (requires {
                      from.kernel_ch;
                      to->kernel_ch;
                    }) {
        to->kernel_ch.channel = from.kernel_ch.channel;
        LOCKSTEP_COPY(kernel_ch.ptimer);
      }
      break;
    case nccl_abi::kTypeNetPlugin:
      LOCKSTEP_COPY(net_plugin);
      break;
    case nccl_abi::kTypeGroupApi:
      LOCKSTEP_COPY(group_api);
      break;
    case nccl_abi::kTypeKernelLaunch:
      LOCKSTEP_COPY(kernel_launch);
      break;
    case nccl_abi::kTypeCollApi:
      if constexpr (requires {
                      from.coll_api;
                      to->coll_api;
                    })
        translate_operation(from.coll_api, &to->coll_api);
      break;
    case nccl_abi::kTypeP2pApi:
      if constexpr (requires {
                      from.p2p_api;
                      to->p2p_api;
                    })
        translate_operation(from.p2p_api, &to->p2p_api);
      break;
    case nccl_abi::kTypeCeColl:
      if constexpr (requires {
                      from.ce_coll;
                      to->ce_coll;
                    })
        translate_operation(from.ce_coll, &to->ce_coll);
      break;
    case nccl_abi::kTypeCeSync:
      LOCKSTEP_COPY(ce_sync);
      break;
    case nccl_abi::kTypeCeBatch:
      LOCKSTEP_COPY(ce_batch);
      break;
    default:
      break;  // KernelPhase: of one version only
  }
}

// `to` is all zero. The parents in `from` are the chained plugin's; `rank` is the communicator's, which v7
// tells with API events too.
template <int kFrom, int kTo>
void translate(const typename Version<kFrom>::Descriptor& from, int32_t rank,
               typename Version<kTo>::Descriptor* to) {
  to->type = static_cast<decltype(to->type)>(from.type);
  to->parent = from.parent;
  to->rank = from.rank;
  if (kTo >= 7 && from.type >= nccl_abi::kTypeGroupApi && from.type <= nccl_abi::kTypeKernelLaunch)
    to->rank = rank;
  switch (uint64_t{from.type}) {
    case nccl_abi::kTypeColl:
      translate_operation(from.coll, &to->coll);
      if constexpr (kFrom >= 5 && kTo <= 4) to->parent = from.coll.parent_group;
      break;
    case nccl_abi::kTypeP2p:
      translate_operation(from.p2p, &to->p2p);
      if constexpr (kFrom >= 5 && kTo <= 4) to->parent = from.p2p.parent_group;
      break;
    case nccl_abi::kTypeProxyOp:
      to->proxy_op = from.proxy_op;
      break;
    case nccl_abi::kTypeProxyStep:
      to->proxy_step = from.proxy_step;
      break;
    default:
      translate_newer(from, to);
      break;
  }
}
#undef LOCKSTEP_COPY

template <class From, class To>
// Of one layout they are copied whole, as only the state says what of them holds.
void translate_arguments(nccl_abi::State state, const From* from, To* to) {
  if (from == nullptr) return;
  if constexpr (sizeof(To) == sizeof(From)) {
    memcpy(to, from, sizeof *to);
  } else if (state >= nccl_abi::kProxyCtrlIdle && state <= nccl_abi::kProxyCtrlAppendEnd) {
    to->proxy_ctrl.appended = from->proxy_ctrl.appended;  // v4 and later to v3 and earlier: no sizes
  }
}

}  // namespace lockstep::capture::nccl
