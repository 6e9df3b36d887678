// SPDX-License-Identifier: Apache-2.0
// roctx gives a started range its own number, so a table leads from that to our record. Numbers count up:
// each has its place, which an older range that is still open may hold.
#include <atomic>

#include "capture/core/log/thread_log.h"
#include "capture/cuda/ranges.h"

namespace lockstep::capture::cuda {
namespace {

struct Started {
  std::atomic<uint64_t> number_plus_1;  // 0: free
  std::atomic<uint64_t> range;
};
Started g_started[kMostNumbered];

}  // namespace

void start_numbered_range(uint64_t number, RangeName name) {
  Started& place = g_started[number % kMostNumbered];
  uint64_t is_free = 0;
  if (!place.number_plus_1.compare_exchange_strong(is_free, number + 1, std::memory_order_acq_rel)) {
    if (ThreadLog* log = ThreadLog::get()) log->lose(kLoss_clamped);
    return;
  }
  // Nobody can stop it before the call that starts it has returned.
  place.range.store(start_range(0, name), std::memory_order_release);
}

void end_numbered_range(uint64_t number) {
  Started& place = g_started[number % kMostNumbered];
  if (place.number_plus_1.load(std::memory_order_acquire) != number + 1) return;
  const uint64_t range = place.range.load(std::memory_order_acquire);
  uint64_t mine = number + 1;
  // Of two that stop it, one does.
  if (place.number_plus_1.compare_exchange_strong(mine, 0, std::memory_order_acq_rel)) end_range(range);
}

}  // namespace lockstep::capture::cuda
