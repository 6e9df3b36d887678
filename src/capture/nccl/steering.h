// SPDX-License-Identifier: Apache-2.0
// Which events NCCL is asked for, and of which operations they are kept. NCCL reads one mask of the whole
// process, once per operation, before it calls us; so what the mask says must be right one operation ahead:
//
//   sample=K/N   the n-th operation of a communicator is chosen if n % N >= N - K. After each operation it is
//                known whether the next one of its communicator (or of its pair of ranks, for sends and
//                receives) is; while any is, the mask asks for deep events. What comes of operations that are
//                not chosen is declined.
//   deep for some communicators or sizes: the mask asks for all, and what is not chosen is declined.
//
// n counts from the communicator's first operation, in every mode, so all ranks choose alike, whenever
// sampling begins. A send and its receive are the n-th of their pair on both sides. That an operation is
// chosen is a bit in the handle that NCCL gets (kChosen): it comes back as the parent of kernels and network
// work, also in another process (PXN) and with every replay of a graph. Files hold handles without it.
//
// Threads: the event path reads one word, and where that is not 0 calls the functions of this page, which may
// use atomic read-modify-writes but never wait. record() and apply_pending() belong to the keeper.
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/core/log/thread_log.h"
#include "capture/core/session/control.h"
#include "capture/core/session/session.h"

namespace lockstep::capture::nccl {

// The highest bit of a position, which no log reaches: 128 TiB.
inline constexpr uint64_t kChosen = uint64_t{1} << (format::kHandlePositionBits - 1);

// What the event path must look at more closely. 0: the mask alone decides.
inline constexpr uint32_t kNothing = 1;   // off: operations are counted and declined
inline constexpr uint32_t kNoGroups = 2;  // lite
inline constexpr uint32_t kSelects = 4;   // deep events of chosen operations only
inline constexpr uint32_t kMaskWaits = 8;

// Of sends to a rank, or of receives from it. Both words are atomic; one thread at a time counts.
struct PairCount {
  uint32_t operations;
  uint32_t expected;  // epoch in which its next operation is waited for
};
// What is counted for a communicator of this process, by its index. It lives as long as the process, since
// contexts outlive their communicators.
struct CommCount {
  std::atomic<uint32_t> operations;  // collectives so far
  std::atomic<uint32_t> expected;
  std::atomic<bool> allowed;  // its deep events are wanted
  uint32_t ranks;
  std::atomic<PairCount*> pairs;  // [2 * peer + is_send]; none if the ranks are not known (v1 to v3)
  std::atomic<uint64_t> comm_id;
  std::atomic<uint8_t> mask;  // 1 + place in the table of masks; 0 none
};
inline constexpr uint32_t kCommsPerPage = 1024, kCommPages = 1024;

// One for the process. Any thread; each member is atomic by itself.
struct SteeringState {
  std::atomic<uint32_t> word{0};
  std::atomic<uintptr_t> p2p_owner{0};  // the thread log that sends and receives; kSeveral
  std::atomic<uint64_t> p2p_ticks{0};   // of the last send or receive
  std::atomic<CommCount*> pages[kCommPages] = {};
};
extern SteeringState g_steering;
inline constexpr uintptr_t kSeveral = 1;

inline uint32_t steering() { return g_steering.word.load(std::memory_order_relaxed); }

// What is kept about a communicator of ours; nullptr if nothing is. A context may be any number: tag and
// index are checked before a page is touched.
inline CommCount* count_of(uint64_t context) {
  const uint32_t comm = static_cast<uint32_t>(context) - 1;
  const Session& session = Session::get();
  if (static_cast<uint32_t>(context >> 32) != session.process_tag() || comm >= session.comms() ||
      comm >= kCommPages * kCommsPerPage)
    return nullptr;
  CommCount* page = g_steering.pages[comm / kCommsPerPage].load(std::memory_order_acquire);
  return page == nullptr ? nullptr : page + comm % kCommsPerPage;
}

// One thread at a time works on a communicator.
inline uint32_t count_collective(CommCount* comm) {
  if (comm == nullptr) return 0;
  const uint32_t number = comm->operations.load(std::memory_order_relaxed);
  comm->operations.store(number + 1, std::memory_order_relaxed);
  return number;
}
// nullptr where the ranks of the communicator are not known, or the peer is none of them.
inline PairCount* pair_of(CommCount* comm, int32_t peer, bool is_send) {
  if (comm == nullptr || peer < 0 || static_cast<uint32_t>(peer) >= comm->ranks) return nullptr;
  PairCount* pairs = comm->pairs.load(std::memory_order_acquire);
  return pairs == nullptr ? nullptr : &pairs[2 * static_cast<uint32_t>(peer) + (is_send ? 1 : 0)];
}
// The number that the next send or receive of the pair gets, from 0; it is counted.
inline uint32_t count_pair(PairCount* pair) {
  if (pair == nullptr) return 0;
  const uint32_t number = __atomic_load_n(&pair->operations, __ATOMIC_RELAXED);
  __atomic_store_n(&pair->operations, number + 1, __ATOMIC_RELAXED);
  return number;
}

[[gnu::cold, gnu::noinline]] void record_new_p2p_thread(uintptr_t log);
// NCCL 2.27 to 2.30 must not see its mask change between a receive and a send that it fuses; steering.cc says
// why.
inline void record_p2p_thread(const ThreadLog* log) {
  const uintptr_t owner = g_steering.p2p_owner.load(std::memory_order_relaxed);
  if (__builtin_expect(owner != reinterpret_cast<uintptr_t>(log) && owner != kSeveral, 0))
    record_new_p2p_thread(reinterpret_cast<uintptr_t>(log));
}

// The choice for an operation; `launching`: called while NCCL launches, when all operations of its group are
// known.
struct OperationSeen {
  CommCount* comm;
  uint32_t number;
  uint64_t bytes;
  bool launching;
};
// Each moves its slot on by one operation, may change NCCL's mask for the next one, and says whether this
// one's deep events are kept. Never waits.
bool choose_collective(ThreadLog* log, const OperationSeen& operation);
bool choose_pair(ThreadLog* log, PairCount* pair, const OperationSeen& operation, bool was_watched);
// Whether NCCL watches what is called now, as far as the mask shows.
bool is_watched();
// Whether NCCL's word may ask for kernels, or not any more, from here on, for somebody else; `launching`:
// called by the thread that launches.
bool may_switch_kernels(bool launching, bool turns_on);
// From the event path, while NCCL launches.
[[gnu::cold, gnu::noinline]] void apply_pending_at_launch(const ThreadLog* log);

// The keeper's: what is to be recorded from now on; and, on every nap, what NCCL could not be told so far.
void record(const Recording& recording);
void apply_pending();

// A communicator of ours begins or ends; `mask` is NCCL's word, which it reads as long as one of its
// communicators lives.
void begin_counting(uint32_t comm, const CommInfo& info, int* mask);
void identify_counted(uint32_t comm, uint64_t comm_id);
void end_counting(uint32_t comm);
// What NCCL's word should hold now.
int mask_for(int api);

}  // namespace lockstep::capture::nccl
