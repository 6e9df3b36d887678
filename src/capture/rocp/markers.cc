// SPDX-License-Identifier: Apache-2.0
// roctx gives a started range its own number, so a table leads from that to our record. Numbers count up:
// each has its place, which an older range that is still open may hold.
#include "capture/rocp/markers.h"

#include <atomic>

#include "capture/core/log/thread_log.h"
#include "capture/cuda/ranges.h"

namespace lockstep::capture::rocp {
namespace {

struct Started {
  std::atomic<uint64_t> range_plus_1;  // 0: free
  std::atomic<uint64_t> record;
};
Started g_started[kMostStarted];

void start(uint64_t range, const char* text) {
  Started& place = g_started[range % kMostStarted];
  uint64_t is_free = 0;
  if (!place.range_plus_1.compare_exchange_strong(is_free, range + 1, std::memory_order_acq_rel)) {
    if (ThreadLog* log = ThreadLog::get()) log->lose(kLoss_clamped);
    return;
  }
  // Nobody can stop it before this call has returned.
  place.record.store(cuda::start_range(0, cuda::range_name_of(text)), std::memory_order_release);
}

void stop(uint64_t range) {
  Started& place = g_started[range % kMostStarted];
  if (place.range_plus_1.load(std::memory_order_acquire) != range + 1) return;
  const uint64_t record = place.record.load(std::memory_order_acquire);
  uint64_t mine = range + 1;
  // Of two that stop it, one does.
  if (place.range_plus_1.compare_exchange_strong(mine, 0, std::memory_order_acq_rel)) cuda::end_range(record);
}

}  // namespace

void on_marker(CallbackRecord record, uint64_t*, void*) {
  const auto* marker = static_cast<const Marker*>(record.payload);
  if (record.kind != kMarkers || marker == nullptr || marker->bytes < sizeof *marker) return;
  const bool is_enter = record.phase == kEnter;
  if (record.operation == kPush && is_enter)
    cuda::push_range(0, cuda::range_name_of(marker->text));
  else if (record.operation == kPop && is_enter)
    cuda::pop_range(0);
  else if (record.operation == kStartRange && record.phase == kExit)
    start(marker->returned, marker->text);
  else if (record.operation == kStopRange && is_enter)
    stop(marker->range);
}

}  // namespace lockstep::capture::rocp
