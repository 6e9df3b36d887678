// SPDX-License-Identifier: Apache-2.0
// Cells are in ns, so the rate of the ticks has to be known while the process runs. Until it can be measured,
// durations are left out and not guessed: `timed` counts those that are in. An operation is as large as the
// greater of what goes in and what comes out: of a gather or a scatter the other is one part.
#include "capture/api/histogram.h"

#include "capture/core/log/histogram_cell.h"
#include "capture/core/session/session.h"

namespace lockstep::capture::api {
namespace {

uint64_t message_bytes(const format::ApiOpRecord* record) {
  return (record->in_count > record->out_count ? record->in_count : record->out_count) *
         record->element_bytes;
}

format::HistogramCell* cell_of(ThreadLog* log, const format::ApiOpRecord* record, uint64_t op) {
  uint64_t key = uint64_t{record->comm} << 32 | uint64_t{record->shape} << 16 |
                 size_bucket(message_bytes(record)) << 8 | static_cast<uint8_t>(format::Kind::kApiOp);
  return log->histogram_cell(key, format::handle_log(op), record->head.start);
}

// Measured once, over at least 20 ms of capture; 0 before.
double ns_per_tick(uint64_t now) {
  static double known;
  double value;
  __atomic_load(&known, &value, __ATOMIC_RELAXED);
  if (value != 0) return value;
  const format::ClockAnchor& first = Session::get().file().header()->first_anchor;
  int64_t elapsed = clock_ns(CLOCK_MONOTONIC) - first.monotonic_ns;
  if (elapsed < 20000000 || now <= first.ticks) return 0;
  value = static_cast<double>(elapsed) / static_cast<double>(now - first.ticks);
  __atomic_store(&known, &value, __ATOMIC_RELAXED);
  return value;
}

}  // namespace

void count_operation(ThreadLog* log, const format::ApiOpRecord* record, uint64_t op) {
  format::HistogramCell* cell = cell_of(log, record, op);
  if (cell != nullptr) add_operation(cell, message_bytes(record), record->head.start);
}

void count_duration(ThreadLog* log, const format::ApiOpRecord* record, uint64_t op, uint64_t now) {
  double scale = ns_per_tick(now);
  format::HistogramCell* cell = scale == 0 ? nullptr : cell_of(log, record, op);
  if (cell != nullptr)
    add_duration(cell, static_cast<uint64_t>(static_cast<double>(now - record->head.start) * scale));
}

}  // namespace lockstep::capture::api
