// SPDX-License-Identifier: Apache-2.0
// What a profiler has switched on, and when.
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/cuda/fences.h"

namespace lockstep::capture::cuda {

// From where to where a profiler had a kind of record on: by CUPTI's clock (0 never or not yet), fences.
class Window {
 public:
  void open(uint64_t now, uint32_t fence) {
    if (is_open()) return;
    until_.store(0, std::memory_order_relaxed);
    first_.store(fence, std::memory_order_relaxed);
    last_.store(0, std::memory_order_relaxed);
    since_.store(now, std::memory_order_release);
  }
  void close(uint64_t now, uint32_t fence) {
    if (!is_open()) return;
    last_.store(fence, std::memory_order_relaxed);
    until_.store(now, std::memory_order_release);
  }
  // As if it had never been open.
  void forget() { since_.store(0, std::memory_order_release); }
  bool is_open() const {
    return since_.load(std::memory_order_acquire) != 0 && until_.load(std::memory_order_acquire) == 0;
  }
  bool holds(uint64_t time) const {
    const uint64_t from = since_.load(std::memory_order_acquire), to = until_.load(std::memory_order_acquire);
    return from != 0 && time >= from && (to == 0 || time <= to);
  }
  // Something on the GPU, by its launch.
  bool holds(uint64_t time, uint32_t correlation, const Fences& fences) const {
    const uint64_t from = since_.load(std::memory_order_acquire), to = until_.load(std::memory_order_acquire);
    if (from == 0) return false;
    const Fences::Side first = fences.side(first_.load(std::memory_order_relaxed), correlation);
    const Fences::Side last = fences.side(last_.load(std::memory_order_relaxed), correlation);
    return (first == Fences::Side::kUnknown ? time >= from : first == Fences::Side::kAfter) &&
           (to == 0 || (last == Fences::Side::kUnknown ? time <= to : last == Fences::Side::kBefore));
  }

 private:
  std::atomic<uint64_t> since_{0}, until_{0};
  std::atomic<uint32_t> first_{0}, last_{0};  // fences
};

// In which contexts of CUDA a profiler has a kind of record on. Beyond those that are kept it counts as on in
// all, until the kind goes off: records that it did not ask for do less harm than records that it misses.
class Contexts {
 public:
  // nullptr: all.
  void add(void* context) {
    remove(context);
    if (context == nullptr || count_ == kMost)
      are_all_ = true;
    else
      contexts_[count_++] = context;
  }
  void remove(void* context) {
    for (uint32_t i = 0; i < count_; ++i) {
      if (contexts_[i] == context) contexts_[i--] = contexts_[--count_];
    }
  }
  void clear() {
    are_all_ = false;
    count_ = 0;
  }
  bool any() const { return are_all_ || count_ != 0; }

 private:
  static constexpr uint32_t kMost = 16;
  void* contexts_[kMost] = {};
  uint32_t count_ = 0;
  bool are_all_ = false;
};

}  // namespace lockstep::capture::cuda
