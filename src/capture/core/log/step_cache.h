// SPDX-License-Identifier: Apache-2.0
// The newest record of a proxy step, which the host may start again while it polls. Each set is a cache line,
// the latest used first, so that steps that are polled stay and those that pass by do not. One owner thread;
// all zero is empty.
#pragma once
#include <cstdint>

namespace lockstep::capture {

// Keys are hashes of parent and step: two steps may share one, so the caller compares the record itself.
class StepCache {
 public:
  static uint64_t key(uint64_t parent, int32_t step) {
    return (parent << 16 ^ static_cast<uint32_t>(step)) * 0x9e3779b97f4a7c15;
  }
  // The step's handle; 0 if it is not remembered.
  uint64_t recent(uint64_t key) {
    Entry* set = sets_[key >> 58];
    for (uint32_t way = 0; way < kWays; ++way) {
      if (set[way].key != key || set[way].handle == 0) continue;
      uint64_t handle = set[way].handle;
      for (; way > 0; --way) set[way] = set[way - 1];
      set[0] = {key, handle};
      return handle;
    }
    return 0;
  }
  void remember(uint64_t key, uint64_t handle) {
    Entry* set = sets_[key >> 58];
    for (uint32_t way = kWays - 1; way > 0; --way) set[way] = set[way - 1];
    set[0] = {key, handle};
  }

 private:
  static constexpr uint32_t kSets = 64, kWays = 4;
  struct Entry {
    uint64_t key;
    uint64_t handle;
  };
  alignas(64) Entry sets_[kSets][kWays];
};

}  // namespace lockstep::capture
