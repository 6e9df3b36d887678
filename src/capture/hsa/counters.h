// SPDX-License-Identifier: Apache-2.0
// Counts of format/hsa_counters.def: of a queue (one writer at a time: the queue's launching thread, or who
// collects), and of the process. Any thread reads.
#pragma once
#include <atomic>
#include <cstdint>

#include "format/definitions.h"

namespace lockstep::capture::hsa {

enum Counter : uint32_t {
#define COUNTER(index, name, label, text) kCount_##name = index,
#include "format/hsa_counters.def"
#undef COUNTER
};

// Numbers only grow. add() is for one writer at a time: two at once would lose counts.
struct Counters {
  std::atomic<uint64_t> counts[format::kMostHsaCounters];

  void add(Counter counter, uint64_t count = 1) {
    counts[counter].store(counts[counter].load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }
  uint64_t get(Counter counter) const { return counts[counter].load(std::memory_order_relaxed); }
};

}  // namespace lockstep::capture::hsa
