// SPDX-License-Identifier: Apache-2.0
// Where in the order of launches something was switched. A kernel may run long after its launch, so its time
// does not tell whether CUPTI of a profiler alone would have seen it: that one sees what is launched while it
// is on. CUPTI numbers calls in their order (correlation); so at a switch a call is made that does nothing,
// with its record on, and the number in its record is the border. Any thread. A fence whose record has not
// come yet, or never does, is unknown; then times have to do.
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/cuda/cupti_abi.h"
#include "capture/cuda/cupti_clock.h"
#include "capture/cuda/cupti_library.h"

namespace lockstep::capture::cuda {

class Fences {
 public:
  // Places a fence now; its number, 0 if there can be none. `all_calls_are_on`: each call of the driver has a
  // record already. `system_thread_ids`: how records name their thread.
  uint32_t place(const CuptiLibrary& library, CuptiClock& clock, bool all_calls_are_on,
                 bool system_thread_ids);
  // Whether a record is that of a fence; learns its place.
  bool learn(const cupti::Record& record);
  // Whether records of fences are still to come. `give_up`: no more are.
  bool pending() const { return pending_.load(std::memory_order_acquire) != 0; }
  void give_up() { pending_.store(0, std::memory_order_release); }
  enum class Side { kUnknown, kBefore, kAfter };
  Side side(uint32_t fence, uint32_t correlation) const;

 private:
  static constexpr uint32_t kFences = 64;  // the newest; a profiler's session takes some ten
  struct Fence {
    std::atomic<uint64_t> from{0}, to{0};  // the call lies between, on CUPTI's clock
    std::atomic<uint32_t> thread{0};
    std::atomic<uint64_t> correlation{0};  // with the number of the fence above it, once known
  };
  Fence fences_[kFences];
  std::atomic<uint32_t> count_{0};
  std::atomic<uint64_t> pending_{0};  // a bit a fence
};

}  // namespace lockstep::capture::cuda
