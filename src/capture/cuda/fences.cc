// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/fences.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::capture::cuda {

uint32_t Fences::place(const CuptiLibrary& library, cupti::Timestamp timestamp, bool all_calls_are_on,
                       bool system_thread_ids) {
  if (library.enable_driver_api == nullptr) return 0;
  const uint32_t number = count_.fetch_add(1, std::memory_order_relaxed) + 1;
  Fence& fence = fences_[number % kFences];
  fence.to.store(0, std::memory_order_release);
  fence.correlation.store(0, std::memory_order_relaxed);
  fence.thread.store(
      static_cast<uint32_t>(system_thread_ids ? static_cast<uint64_t>(syscall(SYS_gettid)) : pthread_self()),
      std::memory_order_relaxed);
  if (!all_calls_are_on) library.enable_driver_api(cupti::kDriverGetVersion, 1);
  fence.from.store(timestamp(), std::memory_order_relaxed);
  const bool called = driver_version() != 0;
  fence.to.store(timestamp(), std::memory_order_release);
  if (!all_calls_are_on) library.enable_driver_api(cupti::kDriverGetVersion, 0);
  if (!called) return 0;
  pending_.fetch_or(uint64_t{1} << number % kFences, std::memory_order_acq_rel);
  return number;
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
