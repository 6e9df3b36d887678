// SPDX-License-Identifier: Apache-2.0
// HandlePairs: which handle of the chained plugin belongs to a handle that NCCL has. Bounded: a new event
// takes the place of the oldest in its set, first of those that have stopped. A handle that was never put in
// is not found, whatever its value: nothing is touched by way of it.
//
// Threads: any, at any time, without waiting. A place is taken by compare-and-swap and is found by nobody
// until it is whole; a reader that is overtaken finds nothing.
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/core/clock.h"
#include "format/file_layout.h"

namespace lockstep::capture::nccl {

// What is kept with a pair.
struct PairFacts {
  uint16_t own_mask, other_mask;  // what each asked for when the operation was called
  uint8_t type;                   // log2 of NCCL's type bit
  uint8_t mask;                   // which copy of NCCL
  bool stopped, without_states;
};

class HandlePairs {
 public:
  // Events whose stop is the last that is heard of them are kept apart from those that are named as parents,
  // and these from calls captured into a graph, which are named with each replay.
  enum Room : uint32_t { kLeaves, kTasks, kCaptured, kRooms };

  struct Found {
    uint64_t other = 0;  // 0: the chained plugin was not told of the event, or declined it
    PairFacts facts{};
    bool known = false;
    Room room = kLeaves;  // where it is, if known
  };

  // False when an event that still had to be stopped was forgotten for it, or the pair could not be kept.
  bool put(Room room, uint64_t handle, uint64_t other, const PairFacts& facts) {
    Pair* set = set_of(room, handle);
    const uint64_t packed = pack(facts);
    for (uint32_t way = 0; way < kWays; ++way) {
      if (set[way].handle.load(std::memory_order_relaxed) == handle)
        return fill(&set[way], handle, handle, other, packed);
    }
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Pair* victim = nullptr;
      uint64_t seen = kBusy, best = ~uint64_t{0};
      for (uint32_t way = 0; way < kWays; ++way) {
        const uint64_t there = set[way].handle.load(std::memory_order_relaxed);
        if (there == kBusy) continue;
        const uint64_t age = there == 0 ? 0 : rank(set[way]);
        if (victim != nullptr && age >= best) continue;
        victim = &set[way], seen = there, best = age;
      }
      if (victim == nullptr) continue;
      // A captured call has no end that anybody waits for.
      const bool is_lost = room != kCaptured && seen != 0 &&
                           victim->other.load(std::memory_order_relaxed) != 0 &&
                           (victim->facts.load(std::memory_order_relaxed) & kStopped) == 0;
      if (fill(victim, seen, handle, other, packed)) return !is_lost;
    }
    return false;
  }

  // The handle is looked at again behind the rest: a pair that was replaced meanwhile is not found.
  Found find(Room room, uint64_t handle) const {
    const Pair* set = set_of(room, handle);
    for (uint32_t way = 0; way < kWays; ++way) {
      if (set[way].handle.load(std::memory_order_acquire) != handle) continue;
      Found found{set[way].other.load(std::memory_order_acquire),
                  unpack(set[way].facts.load(std::memory_order_acquire)), true, room};
      if (set[way].handle.load(std::memory_order_relaxed) == handle) return found;
    }
    return {};
  }

  // From now on the pair is the first to make room in its set.
  void note_stop(Room room, uint64_t handle) {
    Pair* set = set_of(room, handle);
    for (uint32_t way = 0; way < kWays; ++way) {
      if (set[way].handle.load(std::memory_order_acquire) != handle) continue;
      // Overtaken by another event of the same facts, that one may be forgotten early.
      uint64_t facts = set[way].facts.load(std::memory_order_relaxed);
      set[way].facts.compare_exchange_strong(facts, facts | kStopped, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr uint32_t kWays = 4, kSets = 8192;  // 32,768 pairs, 1 MiB a room
  static constexpr int kAttempts = 4;
  static constexpr uint64_t kBusy = ~uint64_t{0};
  static constexpr uint64_t kStopped = uint64_t{1} << 40, kWithoutStates = uint64_t{1} << 41;
  struct Pair {
    std::atomic<uint64_t> handle, other, facts, ticks;
  };
  static_assert(sizeof(Pair) == 32);

  static uint64_t pack(const PairFacts& facts) {
    return uint64_t{facts.own_mask} | uint64_t{facts.other_mask} << 16 | uint64_t{facts.type} << 32 |
           uint64_t{facts.mask} << 48 | (facts.stopped ? kStopped : 0) |
           (facts.without_states ? kWithoutStates : 0);
  }
  static PairFacts unpack(uint64_t packed) {
    return {static_cast<uint16_t>(packed),      static_cast<uint16_t>(packed >> 16),
            static_cast<uint8_t>(packed >> 32), static_cast<uint8_t>(packed >> 48),
            (packed & kStopped) != 0,           (packed & kWithoutStates) != 0};
  }
  // The lowest goes first.
  static uint64_t rank(const Pair& pair) {
    const uint64_t open = (pair.facts.load(std::memory_order_relaxed) & kStopped) == 0;
    return open << 63 | (pair.ticks.load(std::memory_order_relaxed) >> 1 & ~(uint64_t{1} << 63)) | 1;
  }
  // Positions of one log follow each other, and so do its sets.
  static uint32_t set_number(uint64_t handle) {
    return static_cast<uint32_t>((format::handle_position(handle) >> 2) + 2741 * format::handle_log(handle)) %
           kSets;
  }
  Pair* set_of(Room room, uint64_t handle) { return pairs_[room][set_number(handle)]; }
  const Pair* set_of(Room room, uint64_t handle) const { return pairs_[room][set_number(handle)]; }

  static bool fill(Pair* pair, uint64_t seen, uint64_t handle, uint64_t other, uint64_t packed) {
    if (!pair->handle.compare_exchange_strong(seen, kBusy, std::memory_order_acquire,
                                              std::memory_order_relaxed))
      return false;
    pair->other.store(other, std::memory_order_release);
    pair->facts.store(packed, std::memory_order_release);
    pair->ticks.store(read_ticks(), std::memory_order_release);
    pair->handle.store(handle, std::memory_order_release);
    return true;
  }

  alignas(64) Pair pairs_[kRooms][kSets][kWays] = {};  // all zero: costs no memory until it is used
};

}  // namespace lockstep::capture::nccl
