// SPDX-License-Identifier: Apache-2.0
// CUPTI gives the number of a call only to a subscriber, and has one place for subscribers. So a fence is
// found in the records by its thread and by the time between two readings around it. The call is
// cuDriverGetVersion, which needs no context and does nothing on the GPU. While the newest fence may still be
// missing, the profiler's buffers wait; a flush gives up on it.
#include "capture/cuda/fences.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::capture::cuda {

// A profiler that is told of the call may switch something in turn.
static constinit thread_local bool t_is_placing = false;

uint32_t Fences::place(const CuptiLibrary& library, CuptiClock& clock, bool all_calls_are_on,
                       bool system_thread_ids) {
  if (library.enable_driver_api == nullptr || t_is_placing) return 0;
  t_is_placing = true;
  const uint32_t number = count_.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t bit = uint64_t{1} << number % kFences;
  Fence& fence = fences_[number % kFences];
  // 0 hides the slot from learn() while it is filled in anew.
  fence.to.store(0, std::memory_order_release);
  fence.correlation.store(0, std::memory_order_relaxed);
  // CUPTI's records have 32 bits for a thread: of pthread_self() the lower half.
  fence.thread.store(
      static_cast<uint32_t>(system_thread_ids ? static_cast<uint64_t>(syscall(SYS_gettid)) : pthread_self()),
      std::memory_order_relaxed);
  if (!all_calls_are_on) library.enable_driver_api(cupti::kDriverGetVersion, 1);
  fence.from.store(clock.now(), std::memory_order_relaxed);
  // Before the call: another thread may deliver its record at once.
  fence.to.store(~uint64_t{0}, std::memory_order_release);
  pending_.fetch_or(bit, std::memory_order_acq_rel);
  const bool called = driver_version() != 0;
  fence.to.store(clock.now(), std::memory_order_release);
  if (!all_calls_are_on) library.enable_driver_api(cupti::kDriverGetVersion, 0);
  if (!called) pending_.fetch_and(~bit, std::memory_order_acq_rel);
  t_is_placing = false;
  return called ? number : 0;
}

bool Fences::learn(const cupti::Record& record) {
  using Field = cupti::ApiCall;
  if (record.kind() != cupti::kDriver || record.get<uint32_t>(Field::kCall) != cupti::kDriverGetVersion)
    return false;
  const auto start = record.get<uint64_t>(Field::kStart), end = record.get<uint64_t>(Field::kEnd);
  const uint32_t newest = count_.load(std::memory_order_relaxed);
  for (uint32_t back = 0; back < kFences && back < newest; ++back) {
    Fence& fence = fences_[(newest - back) % kFences];
    const uint64_t to = fence.to.load(std::memory_order_acquire);
    if (to == 0 || end > to || start < fence.from.load(std::memory_order_relaxed) ||
        record.get<uint32_t>(Field::kThread) != fence.thread.load(std::memory_order_relaxed))
      continue;
    fence.correlation.store(uint64_t{newest - back} << 32 | record.get<uint32_t>(Field::kCorrelation),
                            std::memory_order_release);
    pending_.fetch_and(~(uint64_t{1} << (newest - back) % kFences), std::memory_order_acq_rel);
    return true;
  }
  return false;
}

Fences::Side Fences::side(uint32_t number, uint32_t correlation) const {
  if (number == 0) return Side::kUnknown;
  const uint64_t known = fences_[number % kFences].correlation.load(std::memory_order_acquire);
  if (known >> 32 != number) return Side::kUnknown;
  // Numbers wrap around.
  return static_cast<int32_t>(correlation - static_cast<uint32_t>(known)) > 0 ? Side::kAfter : Side::kBefore;
}

}  // namespace lockstep::capture::cuda
