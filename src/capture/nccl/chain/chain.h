// SPDX-License-Identifier: Apache-2.0
// A second profiler plugin behind ours (LOCKSTEP_CHAIN=path): what the process knows of it, whatever the
// version of the interface. shim.h has the callbacks. docs/decisions/0010-chaining.md says why it is done
// this way.
//
//   NCCL's handle   ours, so that it means what it always means, also in another process (PXN); where we keep
//                   nothing of an event that the other one wants, a number of its own kind, which no log has
//   NCCL's context  ours, or a number of its own where our capture is off
//   NCCL's mask     what ours holds or the other's; each of the two has a word of its own
//
// Threads: what the event path calls takes no lock and may use atomic read-modify-writes. Nothing is ever
// given back: handles and contexts are used after their end.
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/core/session/session.h"
#include "capture/nccl/abi.h"
#include "capture/nccl/chain/pairs.h"

namespace lockstep::capture::nccl {

// The two words of one copy of NCCL, and what is made of them.
struct ChainedMask {
  int* word = nullptr;         // NCCL's; under `taken`
  int own = 0;                 // steering.h stores to it
  int other = 0;               // the plugin stores to it when it likes
  int other_may = ~0;          // what of that NCCL is asked for
  std::atomic<int> merged{0};  // what was made of them last
  std::atomic<bool> taken{false};
  uint32_t comms = 0;  // that live; under `taken`: without one the word may be gone

  int wanted_there(int order) const {
    return __atomic_load_n(&other, order) & __atomic_load_n(&other_may, __ATOMIC_RELAXED);
  }
};
inline constexpr uint32_t kChainedMasks = 16;

// A communicator as the chained plugin knows it, by the number in our context. All zero: not chained. `mask`
// and `rank` are written before `valid`, and stay.
struct ChainedComm {
  std::atomic<bool> valid;           // chained at all: `mask` and `rank` are known
  std::atomic<void*> context;        // the plugin's
  std::atomic<bool> is_initialized;  // the plugin's init succeeded
  std::atomic<bool> ended;
  uint8_t mask;  // in ChainState::masks
  int32_t rank;
};

// One for the process; its members are for any thread.
struct ChainState {
  HandlePairs pairs;
  ChainedMask masks[kChainedMasks] = {};
  std::atomic<uint32_t> tag{0};                    // of contexts that are not ours
  std::atomic<uint64_t> missed{0};                 // calls that could not be passed on whole
  std::atomic<ChainedMask*> newest_mask{nullptr};  // for events of another process
};
extern ChainState g_chain;

// A handle of an event of which we keep nothing: a kind that no record has, and no log.
inline constexpr uint64_t kChainOnly = format::make_handle(31, 0, 0);
constexpr bool is_chain_only(uint64_t handle) {
  return handle >> format::kHandlePositionBits == kChainOnly >> format::kHandlePositionBits;
}
uint64_t new_chain_only(HandlePairs::Room room);
constexpr HandlePairs::Room room_of_chain_only(uint64_t handle) {
  return static_cast<HandlePairs::Room>(handle & 3);
}

// Whether LOCKSTEP_CHAIN named one when this library was loaded.
bool is_chain_wanted();
// The struct ncclProfiler_v<N> of the chained plugin to use where NCCL uses `api` with us, loaded on the
// first call; 0 where there is none, which NCCL's log reports once.
struct ChainedVersion {
  int version;
  void* plugin;
};
ChainedVersion chained_version(int api, nccl_abi::Logger logger);
void log_left_out(nccl_abi::Logger logger, const char* name, int error);

// nullptr when there are too many copies of NCCL.
ChainedMask* chained_mask(int* nccl);
void release_mask(ChainedMask* mask);
// Makes NCCL's word follow the two; `launching`: NCCL has no operation of this thread half queued.
void follow_slowly(ChainedMask* mask, bool launching);
void follow_now(ChainedMask* mask);  // stores it whatever it was; not on the event path
inline void follow(ChainedMask* mask, bool launching) {
  const int own = __atomic_load_n(&mask->own, __ATOMIC_RELAXED);
  const int other = mask->wanted_there(__ATOMIC_RELAXED);
  if (__builtin_expect((own | other) != mask->merged.load(std::memory_order_relaxed), 0))
    follow_slowly(mask, launching);
}
// The keeper's, in place of apply_pending() of steering.h.
void apply_pending_chain();

// Takes a context of ours, or where that is none of a communicator of ours makes one. nullptr: no room.
ChainedComm* new_chained_comm(void** context);
// By the tag: a context of our capture, or one that was made for the chained plugin alone.
bool is_of_this_process(uint64_t context);
// nullptr for a context of another process, and for one that is not chained.
ChainedComm* chained_comm(uint64_t context);

// Where the handle of an event is kept. By its kind, as the handle itself says it.
HandlePairs::Room room_of(uint64_t handle);
HandlePairs::Found find_pair(uint64_t handle);
inline void count_missed() { g_chain.missed.fetch_add(1, std::memory_order_relaxed); }
// The file counts them.
void report_missed();

// The mask bits of which one is enough for an NCCL that uses `api` to report an event: its own, and those
// of what hangs below it.
uint32_t enabling_bits(int api, uint32_t type_index);

}  // namespace lockstep::capture::nccl
