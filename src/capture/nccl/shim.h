// SPDX-License-Identifier: Apache-2.0
// What a plugin front-end does, for any version of the interface: translate a descriptor into calls of
// events.h. A version that lacks a field or an event simply has no branch for it.
//
// Promises to NCCL (docs/nccl-events.md, "Conformance"): init always succeeds with a non-NULL context;
// `*handle` is written on every path; contexts and handles are numbers, never dereferenced; every function
// returns success.
#pragma once
#include "capture/nccl/abi.h"
#include "capture/nccl/events.h"

namespace lockstep::capture::nccl {

// The same in all versions.
[[gnu::hot]] inline nccl_abi::NcclResult stop_event(void* handle) {
  stop(reinterpret_cast<uintptr_t>(handle));
  return 0;
}

template <size_t N>
const char* code_name(const char* const (&names)[N], uint8_t code) {
  return code < N ? names[code] : "Unknown";
}

template <int kApi>
// By number of the interface; layouts are in abi/.
struct Version;
#define LOCKSTEP_VERSION(n)                        \
  template <>                                      \
  struct Version<n> {                              \
    using Descriptor = nccl_abi::v##n::Descriptor; \
    using StateArgs = nccl_abi::v##n::StateArgs;   \
    using Plugin = nccl_abi::v##n::Plugin;         \
  }
LOCKSTEP_VERSION(1);
LOCKSTEP_VERSION(2);
LOCKSTEP_VERSION(3);
LOCKSTEP_VERSION(4);
LOCKSTEP_VERSION(5);
LOCKSTEP_VERSION(6);
LOCKSTEP_VERSION(7);
#undef LOCKSTEP_VERSION

template <int kApi>
// The callbacks of one version. Any thread; nothing is kept of a descriptor after the call.
struct Shim {
  using Descriptor = typename Version<kApi>::Descriptor;
  using StateArgs = typename Version<kApi>::StateArgs;
  static constexpr bool kHasCodes = kApi == 1;

  // One for each form that init has had. Version 1 to 3 pass neither name nor logger: what the communicator
  // is, identify_comm() learns later.
  static nccl_abi::NcclResult init_v1(void** context, int* mask) {
    return init(kApi, context, mask, {.api_version = kApi}, nullptr);
  }
  static nccl_abi::NcclResult init_v4(void** context, int* mask, const char* name, uint64_t id, int nodes,
                                      int ranks, int rank, nccl_abi::Logger logger) {
    return init(
        kApi, context, mask,
        {.comm_id = id, .name = name, .rank = rank, .ranks = ranks, .nodes = nodes, .api_version = kApi},
        logger);
  }
  static nccl_abi::NcclResult init_v5(void** context, uint64_t id, int* mask, const char* name, int nodes,
                                      int ranks, int rank, nccl_abi::Logger logger) {
    return init_v4(context, mask, name, id, nodes, ranks, rank, logger);
  }

  [[gnu::hot]] static nccl_abi::NcclResult start_event(void* context, void** handle, Descriptor* d) {
    *handle = as_pointer(start(as_number(context), *d));
    return 0;
  }
  static nccl_abi::NcclResult record_event_state(void* handle, nccl_abi::State state, StateArgs* args) {
    StateValue value;
    // The state says which member holds: 0 to 7 carry sizes and steps, 13 to 18 a count.
    if constexpr (kApi <= 3) {
      if (args != nullptr) {
        if (state >= nccl_abi::kProxyCtrlIdle && state <= nccl_abi::kProxyCtrlAppendEnd) {
          value.number = static_cast<uint32_t>(args->proxy_ctrl.appended);
        } else if (state <= nccl_abi::kProxyOpRecvDone) {
          value.number = args->proxy_op.trans_size;
          value.steps = static_cast<uint32_t>(args->proxy_op.steps);
        }
      }
    } else {
      switch (state) {
        case nccl_abi::kProxyStepSendWait:
        case nccl_abi::kProxyStepRecvFlushWait:
          if (args != nullptr) value.number = args->proxy_step.trans_size;
          break;
        case nccl_abi::kProxyCtrlAppendEnd:
          if (args != nullptr) value.number = static_cast<uint32_t>(args->proxy_ctrl.appended);
          break;
        case nccl_abi::kKernelChStop:
          if (args != nullptr) value.number = args->kernel_ch.ptimer;
          break;
        case nccl_abi::kKernelPhaseStop:
          // RCCL's kProxyDiagUpdate, for which a chained plugin has asked.
          if constexpr (kApi == 6) return 0;
          if (args != nullptr) value.number = args->kernel_ch.ptimer;
          break;
        default:
          break;  // the union may be garbage (states 19, 23, 24 through adapters)
      }
    }
    record_state(as_number(handle), state, value);
    return 0;
  }
  static nccl_abi::NcclResult finalize(void* context) {
    end_comm(as_number(context));
    return 0;
  }

 private:
  static uint64_t as_number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
  static void* as_pointer(uint64_t number) { return reinterpret_cast<void*>(number); }

  template <class Op>
  // Texts are not copied here: the key has NCCL's own pointers.
  static ShapeKey shape_of(const Op& op) {
    ShapeKey key{};
    if constexpr (kHasCodes) {
      key.func = code_name(nccl_abi::kFuncNames, op.func);
      key.datatype = code_name(nccl_abi::kDatatypeNames, op.datatype);
      if constexpr (requires { op.algo; }) {
        key.algo = code_name(nccl_abi::kAlgoNames, op.algo);
        key.proto = code_name(nccl_abi::kProtoNames, op.proto);
      }
    } else {
      key.func = op.func;
      key.datatype = op.datatype;
      if constexpr (requires { op.algo; }) {
        key.algo = op.algo;
        key.proto = op.proto;
      }
      if constexpr (requires { op.sync_strategy; }) key.algo = op.sync_strategy;
    }
    if constexpr (requires { op.root; }) key.root = op.root;
    return key;
  }
  // v1..v3 report the comm's id and name with every operation, if at all.
  template <class Op>
  static void learn_comm(uint64_t context, const Op& op) {
    if constexpr (requires { op.comm_hash; }) {
      if (op.comm_hash != 0) identify_comm(context, op.comm_hash, op.name);
    }
  }
  template <class Op>
  static uint64_t tag_of(const Op& op) {
    if constexpr (requires { op.user_tag; }) return op.user_tag;
    return 0;
  }

  // Events that all versions have; start_newer() has the rest, each from the version on that brought it.
  static uint64_t start(uint64_t context, const Descriptor& d) {
    const uint64_t parent = as_number(d.parent);
    switch (d.type) {
      case nccl_abi::kTypeColl:
        learn_comm(context, d.coll);
        return start_coll(context, parent, d.coll);
      case nccl_abi::kTypeP2p:
        learn_comm(context, d.p2p);
        return start_p2p(context, parent, d.p2p);
      case nccl_abi::kTypeGroup:
        return start_group(context, kApi);
      case nccl_abi::kTypeProxyOp:
        return start_proxy_op(context, parent, d.rank,
                              {d.proxy_op.pid, d.proxy_op.peer, d.proxy_op.steps, d.proxy_op.chunk_size,
                               d.proxy_op.channel, d.proxy_op.is_send != 0});
      case nccl_abi::kTypeProxyStep:
        return start_proxy_step(parent, d.proxy_step.step);
      case nccl_abi::kTypeProxyCtrl:
        return start_proxy_ctrl(context);
      default:
        return start_newer(context, parent, d);
    }
  }

  static uint64_t start_newer(uint64_t context, uint64_t parent, const Descriptor& d) {
    if constexpr (kApi >= 3) {
      if (d.type == nccl_abi::kTypeKernelCh) {
        uint64_t ptimer = 0;
        if constexpr (kApi >= 4) ptimer = d.kernel_ch.ptimer;
        return start_kernel_ch(context, parent, d.kernel_ch.channel, ptimer);
      }
      if (d.type == nccl_abi::kTypeNetPlugin)
        return start_net_plugin(parent, d.net_plugin.id, d.net_plugin.data);
    }
    if constexpr (kApi >= 5) {
      switch (d.type) {
        case nccl_abi::kTypeGroupApi:
          return start_group_api(context, d.group_api.depth, d.group_api.graph_captured);
        case nccl_abi::kTypeCollApi:
          return start_coll_api(context, parent,
                                {shape_of(d.coll_api), d.coll_api.count, as_number(d.coll_api.stream),
                                 d.coll_api.graph_captured, tag_of(d.coll_api)});
        case nccl_abi::kTypeP2pApi:
          return start_p2p_api(context, parent,
                               {shape_of(d.p2p_api), d.p2p_api.count, as_number(d.p2p_api.stream),
                                d.p2p_api.graph_captured, tag_of(d.p2p_api)});
        case nccl_abi::kTypeKernelLaunch:
          return start_kernel_launch(context, parent, as_number(d.kernel_launch.stream));
        default:
          break;
      }
    }
    if constexpr (kApi >= 6) {
      switch (d.type) {
        case nccl_abi::kTypeCeColl:
          return start_ce_coll(context, parent, d.ce_coll);
        case nccl_abi::kTypeCeSync:
          return start_ce_sync(context, parent, d.ce_sync.is_complete, d.ce_sync.ranks);
        case nccl_abi::kTypeCeBatch:
          return start_ce_batch(context, parent, d.ce_batch.ops, d.ce_batch.total_bytes,
                                d.ce_batch.use_intra_sync);
        default:
          break;
      }
    }
    if constexpr (kApi >= 7) {
      if (d.type == nccl_abi::kTypeKernelPhase)
        return start_kernel_phase(context, parent, d.kernel_phase.channel, d.kernel_phase.phase,
                                  d.kernel_phase.phase_name, d.kernel_phase.ptimer);
    }
    return unknown_event();
  }

  template <class Op>
  static uint64_t start_coll(uint64_t context, uint64_t parent, const Op& op) {
    Coll coll{.shape = shape_of(op),
              .count = op.count,
              .send_buffer = as_number(op.send_buffer),
              .recv_buffer = as_number(op.recv_buffer),
              .seq = op.seq,
              .warps = op.warps,
              .is_first_sight = kApi <= 4};
    if constexpr (requires { op.channels; }) coll.channels = op.channels;
    if constexpr (requires { op.max_channels; }) coll.channels = op.max_channels;
    if constexpr (requires { op.parent_group; }) coll.group = as_number(op.parent_group);
    if constexpr (requires { op.is_symmetric; }) {
      coll.symmetric = op.is_symmetric;
      if (op.is_symmetric && op.kernel_variant != nullptr) coll.shape.algo = op.kernel_variant;
    }
    coll.user_tag = tag_of(op);
    return nccl::start_coll(context, parent, coll);
  }
  template <class Op>
  static uint64_t start_p2p(uint64_t context, uint64_t parent, const Op& op) {
    P2p p2p{.shape = shape_of(op),
            .count = op.count,
            .buffer = as_number(op.buffer),
            .peer = op.peer,
            .is_first_sight = kApi <= 4};
    // "Send" or "Recv": no version has a member for the direction.
    p2p.is_send = p2p.shape.func != nullptr && p2p.shape.func[0] == 'S';
    // The v4 adapter of newer releases leaves the channel count uninitialised.
    if constexpr (kApi >= 5) p2p.channels = op.channels;
    if constexpr (requires { op.parent_group; }) p2p.group = as_number(op.parent_group);
    p2p.user_tag = tag_of(op);
    return nccl::start_p2p(context, parent, p2p);
  }
  template <class Op>
  static uint64_t start_ce_coll(uint64_t context, uint64_t parent, const Op& op) {
    return nccl::start_ce_coll(context, parent,
                               {.shape = shape_of(op),
                                .count = op.count,
                                .send_buffer = as_number(op.send_buffer),
                                .recv_buffer = as_number(op.recv_buffer),
                                .seq = op.seq,
                                .stream = as_number(op.stream),
                                .ce_seq = op.ce_seq,
                                .batch_size = op.batch_size,
                                .batches = op.batches,
                                .intra_sync = op.intra_batch_sync,
                                .user_tag = tag_of(op)});
  }
};

template <int kApi>
// What NCCL finds in ncclProfiler_v<kApi>.
constexpr typename Version<kApi>::Plugin make_plugin() {
  using S = Shim<kApi>;
  auto init = [] {
    if constexpr (kApi <= 3) {
      return &S::init_v1;
    } else if constexpr (kApi == 4) {
      return &S::init_v4;
    } else {
      return &S::init_v5;
    }
  }();
  return {"lockstep", init, &S::start_event, &stop_event, &S::record_event_state, &S::finalize};
}

}  // namespace lockstep::capture::nccl
