// SPDX-License-Identifier: Apache-2.0
// The callbacks that NCCL gets when a second plugin is chained: each call is ours and the other's, each with
// its own handles, contexts and events. Where NCCL would not have told one of the two of an event, by that
// one's mask, it is not.
//
// The other plugin is called first when an event starts and last when it stops, so that our times are NCCL's.
#pragma once
#include "capture/nccl/chain/chain.h"
#include "capture/nccl/chain/translate.h"
#include "capture/nccl/shim.h"

namespace lockstep::capture::nccl {

// What calls the chained plugin, whose version is `to`, where NCCL uses `from`.
template <int kFrom>
struct ChainedCalls {
  using Descriptor = typename Version<kFrom>::Descriptor;
  using StateArgs = typename Version<kFrom>::StateArgs;
  int version;
  int mask;  // what it may ask for
  nccl_abi::NcclResult (*init)(void* plugin, void** context, int* mask, const CommInfo& comm,
                               nccl_abi::Logger logger);
  void (*start)(void* plugin, void* context, void** handle, Descriptor* descriptor, int32_t rank);
  void (*stop)(void* plugin, void* handle);
  void (*state)(void* plugin, void* handle, nccl_abi::State state, StateArgs* args);
  void (*finalize)(void* plugin, void* context);
  const char* (*name)(void* plugin);
};

template <int kFrom, int kTo>
struct ChainedCallsOf {
  using Plugin = typename Version<kTo>::Plugin;
  static Plugin* as_plugin(void* plugin) { return static_cast<Plugin*>(plugin); }
  static void call_as_is(void* plugin, void* handle, nccl_abi::State state,
                         typename Version<kFrom>::StateArgs* args) {
    if constexpr (kFrom == kTo) as_plugin(plugin)->record_event_state(handle, state, args);
  }

  static nccl_abi::NcclResult init(void* plugin, void** context, int* mask, const CommInfo& comm,
                                   nccl_abi::Logger logger) {
    const auto call = as_plugin(plugin)->init;
    if constexpr (kTo <= 3) {
      return call(context, mask);
    } else if constexpr (kTo == 4) {
      return call(context, mask, comm.name, comm.comm_id, comm.nodes, comm.ranks, comm.rank, logger);
    } else {
      const auto result =
          call(context, comm.comm_id, mask, comm.name, comm.nodes, comm.ranks, comm.rank, logger);
      // NCCL's adapters take away what the version cannot know, once.
      if (kTo < kFrom && result == 0)
        __atomic_fetch_and(mask, static_cast<int>(nccl_abi::kKnownTypes[kTo]), __ATOMIC_RELAXED);
      return result;
    }
  }
  static void start(void* plugin, void* context, void** handle,
                    typename Version<kFrom>::Descriptor* descriptor, int32_t rank) {
    const auto call = as_plugin(plugin)->start_event;
    if (call == nullptr || (kFrom != kTo && !knows_event(kFrom, kTo, descriptor->type))) return;
    if constexpr (kFrom == kTo) {
      call(context, handle, descriptor);
    } else {
      typename Version<kTo>::Descriptor translated;
      memset(static_cast<void*>(&translated), 0, sizeof translated);
      translate<kFrom, kTo>(*descriptor, rank, &translated);
      call(context, handle, &translated);
    }
  }
  static void stop(void* plugin, void* handle) {
    if (const auto call = as_plugin(plugin)->stop_event) call(handle);
  }
  static void state(void* plugin, void* handle, nccl_abi::State state,
                    typename Version<kFrom>::StateArgs* args) {
    const auto call = as_plugin(plugin)->record_event_state;
    if (call == nullptr) return;
    // Of v6, only RCCL has this state, and then 24 bytes of arguments; of all others 8 are there for certain.
    if (kFrom == kTo && (kTo != 6 || state == nccl_abi::rccl_v6::kProxyDiagUpdate || args == nullptr)) {
      call_as_is(plugin, handle, state, args);
      return;
    }
    // Versions 1 to 3 have the same states.
    if (kFrom != kTo && kFrom > 3 && !knows_state(kFrom, kTo, state)) return;
    struct {
      typename Version<kTo>::StateArgs args;
      char rest[sizeof(nccl_abi::rccl_v6::StateArgs)];  // a plugin of RCCL's v6 may copy all of them
    } translated;
    memset(static_cast<void*>(&translated), 0, sizeof translated);
    translate_arguments(state, args, &translated.args);
    call(handle, state, &translated.args);
  }
  static void finalize(void* plugin, void* context) {
    if (const auto call = as_plugin(plugin)->finalize) call(context);
  }
  static const char* name(void* plugin) {
    return as_plugin(plugin)->name != nullptr ? as_plugin(plugin)->name : "(unnamed)";
  }
  // A plugin of another version means something else by what this NCCL has no event for.
  static constexpr int kMask = kFrom == kTo ? ~0 : static_cast<int>(nccl_abi::kKnownTypes[kFrom]);
  static constexpr ChainedCalls<kFrom> kCalls = {kTo, kMask, init, start, stop, state, finalize, name};
};

template <int kApi>
// NCCL's callbacks of one version when a plugin is chained. Any thread; no lock on the event path. The handle
// that NCCL gets is ours if we keep the event, else one of the chained plugin's alone.
class ChainShim {
 public:
  using Descriptor = typename Version<kApi>::Descriptor;
  using StateArgs = typename Version<kApi>::StateArgs;

  static nccl_abi::NcclResult init_v1(void** context, int* mask) {
    return init(context, mask, {.api_version = kApi}, nullptr);
  }
  static nccl_abi::NcclResult init_v4(void** context, int* mask, const char* name, uint64_t id, int nodes,
                                      int ranks, int rank, nccl_abi::Logger logger) {
    return init(
        context, mask,
        {.comm_id = id, .name = name, .rank = rank, .ranks = ranks, .nodes = nodes, .api_version = kApi},
        logger);
  }
  static nccl_abi::NcclResult init_v5(void** context, uint64_t id, int* mask, const char* name, int nodes,
                                      int ranks, int rank, nccl_abi::Logger logger) {
    return init_v4(context, mask, name, id, nodes, ranks, rank, logger);
  }

  static nccl_abi::NcclResult start_event(void* context, void** handle, Descriptor* d) {
    const uint64_t number = as_number(context);
    ChainedComm* comm = chained_comm(number);
    const uint64_t type = d->type;
    const auto type_index = static_cast<uint32_t>(__builtin_ctzll(type | uint64_t{1} << 63));
    ChainedMask* mask = comm != nullptr              ? &g_chain.masks[comm->mask]
                        : is_of_this_process(number) ? nullptr
                                                     : g_chain.newest_mask.load(std::memory_order_acquire);
    if (mask == nullptr || type_index >= 16 || calls() == nullptr) {
      own().start_event(context, handle, d);
      if (mask != nullptr) follow(mask, is_launch(type));
      return 0;
    }

    const Parents parents = find_parents(comm, *d);
    const Masks masks = masks_of(*mask, type, parents);
    const uint32_t bits = enabling_bits(kApi, type_index);
    const bool wanted = (masks.own & bits) != 0, wanted_there = (masks.other & bits) != 0;

    void* there = nullptr;
    if ((wanted_there || !wanted) && may_forward(comm, *d, parents)) there = start_there(comm, *d, parents);
    *handle = nullptr;
    if (wanted || !wanted_there) start_here(context, handle, d, parents);
    const auto mask_number = static_cast<uint8_t>(mask - g_chain.masks);
    keep(handle, as_number(there), *d,
         {masks.own, masks.other, static_cast<uint8_t>(type_index), mask_number, false,
          type == nccl_abi::kTypeProxyStep && parents.parent.pair.other == 0});
    follow(mask, is_launch(type));
    return 0;
  }

  // Ours first, so that the other plugin's work is not in our time.
  static nccl_abi::NcclResult stop_event(void* handle) {
    const uint64_t number = as_number(handle);
    if (!is_chain_only(number)) own().stop_event(handle);
    if (number == 0) return 0;
    const HandlePairs::Found pair = find_pair(number);
    // Also of what the other does not have: it would outlive what the other has.
    if (pair.known && !pair.facts.stopped) g_chain.pairs.note_stop(pair.room, number);
    if (pair.other != 0) {
      calls()->stop(plugin(), as_pointer(pair.other));
    } else if (!pair.known && is_chain_only(number)) {
      count_missed();
    }
    return 0;
  }

  // Ours first, as with a stop.
  static nccl_abi::NcclResult record_event_state(void* handle, nccl_abi::State state, StateArgs* args) {
    const uint64_t number = as_number(handle);
    if (!is_chain_only(number)) own().record_event_state(handle, state, args);
    if (number == 0) return 0;
    const HandlePairs::Found pair = find_pair(number);
    if (pair.other == 0 || pair.facts.without_states) return 0;
    // NCCL looks at the mask again for these.
    if (uint64_t{1} << pair.facts.type == nccl_abi::kTypeProxyCtrl) {
      if ((load(g_chain.masks[pair.facts.mask].other) & nccl_abi::kTypeProxyCtrl) == 0) return 0;
    }
    calls()->state(plugin(), as_pointer(pair.other), state, args);
    return 0;
  }

  // Once for each communicator, whatever the host calls.
  static nccl_abi::NcclResult finalize(void* context) {
    own().finalize(context);
    ChainedComm* comm = chained_comm(as_number(context));
    if (comm == nullptr || comm->ended.exchange(true, std::memory_order_acq_rel)) return 0;
    if (comm->is_initialized.load(std::memory_order_acquire)) {
      void* there = comm->context.load(std::memory_order_relaxed);
      if (there != nullptr || kApi <= 4) calls()->finalize(plugin(), there);
      report_missed();
    }
    release_mask(&g_chain.masks[comm->mask]);
    return 0;
  }

  static const typename Version<kApi>::Plugin& own();

 private:
  // What each of the two asked for when NCCL decided about an event: for most, when the operation was called.
  struct Masks {
    uint16_t own, other;
  };
  struct Parent {
    uint64_t number = 0;  // NCCL's
    HandlePairs::Found pair;
    bool is_forgotten = false;  // or never known here
  };
  struct Parents {
    Parent parent, group;
  };

  static uint64_t as_number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
  static void* as_pointer(uint64_t number) { return reinterpret_cast<void*>(number); }
  static uint32_t load(const int& word) {
    return static_cast<uint32_t>(__atomic_load_n(&word, __ATOMIC_RELAXED));
  }
  static Masks live(const ChainedMask& mask) {
    return {static_cast<uint16_t>(load(mask.own)),
            static_cast<uint16_t>(mask.wanted_there(__ATOMIC_RELAXED))};
  }
  static const ChainedCalls<kApi>* calls() { return calls_.load(std::memory_order_acquire); }
  static void* plugin() { return plugin_.load(std::memory_order_relaxed); }
  static constexpr bool is_task(uint64_t type) {
    return type == nccl_abi::kTypeColl || type == nccl_abi::kTypeP2p;
  }
  // NCCL starts these when the operations of a thread's group are all queued.
  static constexpr bool is_launch(uint64_t type) { return type == nccl_abi::kTypeGroup || is_task(type); }
  // What may come from another process, or belongs to an operation that does.
  static constexpr bool is_network(uint64_t type) {
    return type == nccl_abi::kTypeProxyOp || type == nccl_abi::kTypeProxyStep ||
           type == nccl_abi::kTypeNetPlugin;
  }

  static nccl_abi::NcclResult init(void** context, int* nccl_mask, const CommInfo& info,
                                   nccl_abi::Logger logger) {
    ChainedMask* mask = chained_mask(nccl_mask);
    if (mask == nullptr) return init_own(context, nccl_mask, info, logger);
    init_own(context, &mask->own, info, logger);
    ChainedComm* comm = new_chained_comm(context);
    if (comm != nullptr) {
      comm->mask = static_cast<uint8_t>(mask - g_chain.masks);
      comm->rank = info.rank;
      comm->valid.store(true, std::memory_order_release);
      if (load_plugin(logger)) init_there(mask, comm, info, logger);
    }
    follow_now(mask);
    if (comm == nullptr) release_mask(mask);
    return 0;
  }
  static void init_there(ChainedMask* mask, ChainedComm* comm, const CommInfo& info,
                         nccl_abi::Logger logger) {
    __atomic_store_n(&mask->other_may, calls()->mask, __ATOMIC_RELAXED);
    g_chain.newest_mask.store(mask, std::memory_order_release);
    void* there = nullptr;
    if (const int error = calls()->init(plugin(), &there, &mask->other, info, logger); error != 0) {
      log_left_out(logger, calls()->name(plugin()), error);
      return;
    }
    comm->context.store(there, std::memory_order_relaxed);
    comm->is_initialized.store(true, std::memory_order_release);
  }
  static nccl_abi::NcclResult init_own(void** context, int* mask, const CommInfo& info,
                                       nccl_abi::Logger logger) {
    if constexpr (kApi <= 3) {
      return own().init(context, mask);
    } else if constexpr (kApi == 4) {
      return own().init(context, mask, info.name, info.comm_id, info.nodes, info.ranks, info.rank, logger);
    } else {
      return own().init(context, info.comm_id, mask, info.name, info.nodes, info.ranks, info.rank, logger);
    }
  }

  static bool load_plugin(nccl_abi::Logger logger) {
    const ChainedVersion found = chained_version(kApi, logger);
    if (found.plugin == nullptr) return false;
    plugin_.store(found.plugin, std::memory_order_relaxed);
    calls_.store(calls_for(found.version), std::memory_order_release);
    return true;
  }
  // chained_version() names no version of which this has none.
  static const ChainedCalls<kApi>* calls_for(int version) {
    switch (version) {
      case 1:
        return &ChainedCallsOf<kApi, 1>::kCalls;
      case 2:
        if constexpr (kApi >= 2) return &ChainedCallsOf<kApi, 2>::kCalls;
        break;
      case 3:
        if constexpr (kApi >= 3) return &ChainedCallsOf<kApi, 3>::kCalls;
        break;
      case 4:
        if constexpr (kApi >= 4) return &ChainedCallsOf<kApi, 4>::kCalls;
        break;
      case 5:
        if constexpr (kApi >= 5) return &ChainedCallsOf<kApi, 5>::kCalls;
        break;
      case 6:
        if constexpr (kApi >= 5) return &ChainedCallsOf<kApi, 6>::kCalls;
        break;
      default:
        if constexpr (kApi >= 5) return &ChainedCallsOf<kApi, 7>::kCalls;
        break;
    }
    return nullptr;
  }

  static Parent find_parent(const void* handle) {
    Parent parent{as_number(handle), {}, false};
    if (format::handle_log(parent.number) == 0 && !is_chain_only(parent.number)) return parent;
    parent.pair = find_pair(parent.number);
    parent.is_forgotten = !parent.pair.known && room_of(parent.number) != HandlePairs::kLeaves;
    return parent;
  }
  static Parents find_parents(const ChainedComm* comm, const Descriptor& d) {
    Parents parents;
    if (comm == nullptr && d.type == nccl_abi::kTypeProxyOp) {
      // A handle of another process, whose context cannot be told either. Plugins tell by the process id that
      // it is not theirs; where that would not do, there is no parent.
      parents.parent = {as_number(d.parent), {}, true};
      if (d.proxy_op.pid != Session::get().pid()) parents.parent.pair.other = as_number(d.parent);
    } else {
      parents.parent = find_parent(d.parent);
    }
    if constexpr (kApi >= 5) {
      if (d.type == nccl_abi::kTypeColl) parents.group = find_parent(d.coll.parent_group);
      if (d.type == nccl_abi::kTypeP2p) parents.group = find_parent(d.p2p.parent_group);
    }
    return parents;
  }

  // What was asked for when NCCL took note of it: for each call in a group, before it reports either.
  struct Called {
    Masks next{};
    bool has_next = false;
    Masks first{};
    bool has_first = false;
  };
  static Masks masks_of(const ChainedMask& mask, uint64_t type, const Parents& parents) {
    static thread_local Called called;
    switch (type) {
      case nccl_abi::kTypeGroupApi:
        called.next = live(mask);
        called.has_next = true;
        called.has_first = false;
        return called.next;
      case nccl_abi::kTypeCollApi:
      case nccl_abi::kTypeP2pApi: {
        const Masks now = called.has_next ? called.next : live(mask);
        called.has_next = false;
        if (!called.has_first) called.first = now;
        called.has_first = true;
        return now;
      }
      case nccl_abi::kTypeGroup:
      case nccl_abi::kTypeKernelLaunch:
        return kApi >= 5 && called.has_first ? called.first : live(mask);
      case nccl_abi::kTypeProxyCtrl:
      case nccl_abi::kTypeCeColl:
      case nccl_abi::kTypeCeSync:
      case nccl_abi::kTypeCeBatch:
        return live(mask);
      default:
        if (!parents.parent.pair.known) return live(mask);
        return {parents.parent.pair.facts.own_mask, parents.parent.pair.facts.other_mask};
    }
  }

  // Whether NCCL would tell a plugin whose handles are these.
  static bool may_forward(const ChainedComm* comm, const Descriptor& d, const Parents& parents) {
    const uint64_t type = d.type;
    // Of this process, but of no communicator that is chained.
    if (comm == nullptr && type == nccl_abi::kTypeProxyOp && d.proxy_op.pid == Session::get().pid())
      return false;
    if (comm == nullptr ? !is_network(type) : !comm->is_initialized.load(std::memory_order_acquire))
      return false;
    const bool has_parent = parents.parent.pair.other != 0;
    if (type == nccl_abi::kTypeCeSync || type == nccl_abi::kTypeCeBatch) return has_parent;
    if (kApi <= 4 && (is_task(type) || type == nccl_abi::kTypeProxyStep))
      return has_parent || parents.parent.number == 0;
    return true;
  }

  static void* start_there(const ChainedComm* comm, const Descriptor& d, const Parents& parents) {
    if (parents.parent.is_forgotten || parents.group.is_forgotten) count_missed();
    Descriptor copy = d;
    copy.parent = as_pointer(parents.parent.pair.other);
    if constexpr (kApi >= 5) {
      if (d.type == nccl_abi::kTypeColl) copy.coll.parent_group = as_pointer(parents.group.pair.other);
      if (d.type == nccl_abi::kTypeP2p) copy.p2p.parent_group = as_pointer(parents.group.pair.other);
    }
    void* handle = nullptr;
    calls()->start(plugin(), comm != nullptr ? comm->context.load(std::memory_order_relaxed) : nullptr,
                   &handle, &copy, comm != nullptr ? comm->rank : d.rank);
    return handle;
  }

  // A parent of which we keep nothing is none.
  static void start_here(void* context, void** handle, Descriptor* d, const Parents& parents) {
    const bool other_parent = is_chain_only(parents.parent.number);
    if (__builtin_expect(!other_parent && !is_chain_only(parents.group.number), 1)) {
      own().start_event(context, handle, d);
      return;
    }
    Descriptor copy = *d;
    if (other_parent) copy.parent = nullptr;
    if constexpr (kApi >= 5) {
      if (d->type == nccl_abi::kTypeColl && is_chain_only(parents.group.number))
        copy.coll.parent_group = nullptr;
      if (d->type == nccl_abi::kTypeP2p && is_chain_only(parents.group.number))
        copy.p2p.parent_group = nullptr;
    }
    own().start_event(context, handle, &copy);
  }

  static bool is_captured(const Descriptor& d) {
    if constexpr (kApi >= 5) {
      if (d.type == nccl_abi::kTypeCollApi) return d.coll_api.graph_captured;
      if (d.type == nccl_abi::kTypeP2pApi) return d.p2p_api.graph_captured;
    }
    return false;
  }
  static constexpr bool is_leaf(uint64_t type) {
    constexpr uint64_t kLeaves = nccl_abi::kTypeProxyStep | nccl_abi::kTypeProxyCtrl |
                                 nccl_abi::kTypeKernelCh | nccl_abi::kTypeNetPlugin |
                                 nccl_abi::kTypeKernelLaunch | nccl_abi::kTypeCeSync |
                                 nccl_abi::kTypeCeBatch | nccl_abi::kTypeKernelPhase;
    return (type & kLeaves) != 0;
  }
  // Puts the pair in, and gives NCCL a handle where ours is none. Leaves that the other does not have need no
  // pair.
  static void keep(void** handle, uint64_t there, const Descriptor& d, const PairFacts& facts) {
    const uint64_t here = as_number(*handle);
    // Up to v4 a declined event gets a handle without a log, the same for all.
    const bool is_ours = format::handle_log(here) != 0;
    const bool leaf = is_leaf(d.type);
    if (there == 0 && (leaf || !is_ours)) return;
    const HandlePairs::Room room = leaf             ? HandlePairs::kLeaves
                                   : is_captured(d) ? HandlePairs::kCaptured
                                                    : HandlePairs::kTasks;
    const uint64_t number = is_ours ? here : new_chain_only(room);
    *handle = as_pointer(number);
    if (!g_chain.pairs.put(room, number, there, facts)) count_missed();
  }

  static inline constinit std::atomic<const ChainedCalls<kApi>*> calls_{nullptr};
  static inline constinit std::atomic<void*> plugin_{nullptr};
};

// How our own callbacks are reached from here: by way of memory, so that the compiler leaves those that NCCL
// calls when nothing is chained as they are.
template <int kApi>
const typename Version<kApi>::Plugin& ChainShim<kApi>::own() {
  static constexpr typename Version<kApi>::Plugin kOwn = make_plugin<kApi>();
  const typename Version<kApi>::Plugin* own = &kOwn;
  __asm__("" : "+r"(own));
  return *own;
}

// What NCCL finds then in ncclProfiler_v<N>.
template <int kApi>
void chain(typename Version<kApi>::Plugin* plugin) {
  using S = ChainShim<kApi>;
  if constexpr (kApi <= 3) {
    plugin->init = &S::init_v1;
  } else if constexpr (kApi == 4) {
    plugin->init = &S::init_v4;
  } else {
    plugin->init = &S::init_v5;
  }
  plugin->start_event = &S::start_event;
  plugin->stop_event = &S::stop_event;
  plugin->record_event_state = &S::record_event_state;
  plugin->finalize = &S::finalize;
}

}  // namespace lockstep::capture::nccl
