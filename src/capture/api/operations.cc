// SPDX-License-Identifier: Apache-2.0
// What a program says through lockstep.h is recorded as it was said and never corrected here: tools can judge
// a contradiction, and a corrected one is gone. Numbers that it does not give are counted for it, collectives
// apart from sends and receives, as PyTorch does.
#include "capture/api/operations.h"

#include <cstddef>

#include "capture/api/groups.h"
#include "capture/api/histogram.h"
#include "capture/api/names.h"
#include "capture/core/log/thread_log.h"
#include "capture/core/session/session.h"

namespace lockstep::capture::api {
namespace {

using format::ApiOpRecord;
using format::Kind;

// The calling thread's log; the first call of the process opens the session. nullptr when nothing is
// captured.
ThreadLog* thread_log() {
  ThreadLog* log = ThreadLog::current();
  if (__builtin_expect(log != nullptr, 1)) return log;
  Session::get().open(format::Source::kApi, kSteering);
  return ThreadLog::register_thread();
}

ShapeRef shape_of(ThreadLog* log, const char* func, const char* datatype, const char* algo, int32_t root) {
  bool full = false;
  ShapeKey key{.func = intern(func, &full),
               .datatype = intern(datatype, &full),
               .algo = intern(algo, &full),
               .proto = nullptr,
               .root = root};
  if (__builtin_expect(full, 0)) log->lose(kLoss_shape_table_full);
  return log->shape(key);
}

bool is_seq_known(const lockstep_op_info& info) {
  return info.seq > 0 || (info.seq == 0 && (info.flags & LOCKSTEP_OP_SEQ) != 0);
}
bool is_p2p(const lockstep_op_info& info) {
  return (info.flags & LOCKSTEP_OP_P2P) != 0 ||
         (info.peer >= 0 && (info.flags & LOCKSTEP_OP_COLLECTIVE) == 0);
}

uint64_t next_seq(Group* group, const lockstep_op_info& info) {
  // Programs count from 1, files from 0. A 0 that the program insists on becomes 2^64 - 1.
  if (is_seq_known(info)) return static_cast<uint64_t>(info.seq) - 1;
  return group == nullptr
             ? 0
             : __atomic_fetch_add(is_p2p(info) ? &group->paired : &group->collectives, 1, __ATOMIC_RELAXED);
}

uint8_t flags_of(const lockstep_op_info& info) {
  uint32_t flags = 0;
  if (is_seq_known(info)) flags |= format::kFlagSeqKnown;
  if (is_p2p(info)) flags |= format::kFlagP2p;
  if (info.flags & (LOCKSTEP_OP_ASYNC | LOCKSTEP_OP_SYNC)) flags |= format::kFlagAsyncKnown;
  if (info.flags & LOCKSTEP_OP_ASYNC) flags |= format::kFlagAsync;
  return static_cast<uint8_t>(flags);
}

// Of a list that is too long the first numbers are kept and, in the last place, its last one: PyTorch prints
// no more.
void append_split(ThreadLog* log, lockstep_op op, uint64_t ticks, bool is_out, const int64_t* values,
                  uint32_t total) {
  if (values == nullptr || total == 0) return;
  const uint32_t kept = total < format::kSplitsKept ? total : format::kSplitsKept;
  constexpr uint32_t kPiece = sizeof(format::SplitsRecord::values) / sizeof(int64_t);
  for (uint32_t first = 0; first < kept; first += kPiece) {
    auto* record = log->reserve<format::SplitsRecord>();
    if (record == nullptr) return;
    record->head.start = ticks;
    record->child = op;
    record->total = total;
    record->first = static_cast<uint16_t>(first);
    record->is_out = is_out;
    record->n = static_cast<uint8_t>(kept - first < kPiece ? kept - first : kPiece);
    for (uint32_t i = 0; i < kPiece; ++i) {
      const bool is_last = first + i == kept - 1;
      record->values[i] = i >= record->n ? 0 : is_last ? values[total - 1] : values[first + i];
    }
    log->publish(record, Kind::kSplits, 0, 0);
  }
}

// The record behind a handle if this thread may write it; nullptr otherwise.
ApiOpRecord* locate(ThreadLog* log, lockstep_op op) {
  if (log == nullptr || format::handle_kind(op) != static_cast<uint32_t>(Kind::kApiOp)) return nullptr;
  return reinterpret_cast<ApiOpRecord*>(log->find(op));
}

// For what cannot be written into the operation's own record: a log to append to, if the handle is one of
// ours.
ThreadLog* log_for_late(lockstep_op op) {
  ThreadLog* log = thread_log();
  if (log == nullptr) return nullptr;
  if (format::handle_kind(op) == static_cast<uint32_t>(Kind::kApiOp)) return ThreadLog::log_for_late(op);
  log->lose(kLoss_unknown_handle);
  return nullptr;
}

bool is_valid(const lockstep_gpu_times* times) {
  return times != nullptr && times->size >= sizeof *times && times->clock >= LOCKSTEP_CLOCK_MONOTONIC &&
         times->clock <= LOCKSTEP_CLOCK_GPU_TICKS;
}

void append_gpu_times(ThreadLog* log, lockstep_op op, const lockstep_gpu_times& times) {
  uint64_t now = read_ticks();
  log->append_state(op, format::kStateGpuStart, now, times.start, times.clock);
  log->append_state(op, format::kStateGpuEnd, now, times.end, times.clock);
}

void store_gpu_times(ThreadLog* log, ApiOpRecord* record, const lockstep_gpu_times& times) {
  if (record->head.flags & format::kFlagGpuTimes) {
    log->lose(kLoss_repeated_state);
    return;
  }
  record->gpu_start = times.start;
  record->gpu_end = times.end;
  record->gpu_clock = static_cast<uint16_t>(times.clock);
  // Last: whoever sees the flag sees both times.
  __atomic_store_n(&record->head.flags, static_cast<uint8_t>(record->head.flags | format::kFlagGpuTimes),
                   __ATOMIC_RELEASE);
}

void append_mark(const char* name, int64_t value, bool is_step) {
  ThreadLog* log = thread_log();
  if (log == nullptr || is_off()) return;
  uint16_t shape = is_step ? format::kNoShape : shape_of(log, name, nullptr, nullptr, -1).id;
  auto* record = log->reserve<format::MarkRecord>();
  if (record == nullptr) return;
  record->head.start = read_ticks();
  record->value = static_cast<uint64_t>(value);
  record->shape = shape;
  record->is_step = is_step;
  record->reserved0 = 0;
  log->publish(record, Kind::kMark, 0, 0);
}

}  // namespace

lockstep_op begin(const lockstep_op_info* info) {
  ThreadLog* log = thread_log();
  if (log == nullptr) return 0;
  // What callers of the first version pass: the splits came later.
  constexpr size_t kOldest = offsetof(lockstep_op_info, in_split);
  if (info == nullptr || info->size < kOldest) {
    log->lose(kLoss_unknown_type);
    return 0;
  }
  Group* group = find_group(info->group);
  if (__builtin_expect(group == nullptr, 0)) log->lose(kLoss_unknown_context);
  // Taken even if the record is lost: the numbers stay those of the other ranks.
  uint64_t seq = next_seq(group, *info);
  ShapeRef shape = shape_of(log, info->collective, info->dtype, info->algorithm, info->root);
  // Numbered though not recorded: other ranks may go on recording, and recording may come back.
  if (is_off()) return 0;
  auto* record = log->reserve<ApiOpRecord>();
  if (record == nullptr) return 0;
  record->in_count = info->in_count;
  record->out_count = info->out_count;
  record->stream = reinterpret_cast<uintptr_t>(info->stream);
  record->gpu_start = record->gpu_end = 0;
  record->seq = seq;
  record->comm = group == nullptr ? format::kNoComm : group->comm;
  record->shape = shape.id;
  record->gpu_clock = 0;
  record->peer = info->peer;
  record->element_bytes = shape.element_bytes;
  record->head.start = read_ticks();
  const uint64_t ticks = record->head.start;
  lockstep_op op = log->publish(record, Kind::kApiOp, flags_of(*info), 0);
  if (Session::get().file().ring()) count_operation(log, record, op);
  if (__builtin_expect(info->size >= sizeof *info, 1)) {
    append_split(log, op, ticks, false, info->in_split, info->in_splits);
    append_split(log, op, ticks, true, info->out_split, info->out_splits);
  }
  return op;
}

void end(lockstep_op op, const lockstep_gpu_times* times) {
  if (op == 0) return;
  ThreadLog* log = ThreadLog::current();
  ApiOpRecord* record = locate(log, op);
  if (__builtin_expect(record == nullptr, 0)) {
    log = log_for_late(op);
    if (log == nullptr) return;
    log->append_late_stop(op, read_ticks());
    if (times == nullptr) return;
    if (is_valid(times))
      append_gpu_times(log, op, *times);
    else
      log->lose(kLoss_unknown_state);
    return;
  }
  if (__builtin_expect(record->head.stop_after != 0, 0)) {
    log->lose(kLoss_repeated_stop);
    return;
  }
  uint64_t now = read_ticks();
  uint32_t after = ticks_after(record->head.start, now);
  if (__builtin_expect(after == format::kSaturated, 0)) log->append_state(op, format::kStateStop, now, 0, 0);
  if (times != nullptr) {
    if (is_valid(times))
      store_gpu_times(log, record, *times);
    else
      log->lose(kLoss_unknown_state);
  }
  ThreadLog::store_stop(&record->head, after);
  if (Session::get().file().ring()) count_duration(log, record, op, now);
}

void set_gpu_times(lockstep_op op, const lockstep_gpu_times* times) {
  if (op == 0) return;
  ThreadLog* log = ThreadLog::current();
  ApiOpRecord* record = locate(log, op);
  if (!is_valid(times)) {
    if ((log = thread_log()) != nullptr) log->lose(kLoss_unknown_state);
  } else if (record != nullptr) {
    store_gpu_times(log, record, *times);
  } else if ((log = log_for_late(op)) != nullptr) {
    append_gpu_times(log, op, *times);
  }
}

void step(int64_t number) { append_mark(nullptr, number, true); }
void mark(const char* name, int64_t value) { append_mark(name, value, false); }
void count(lockstep_counter* counter) {
  append_mark(counter->name, counter->next++, counter->name == nullptr);
}

}  // namespace lockstep::capture::api

// The values on disk are the ones that callers pass.
static_assert(static_cast<int>(lockstep::format::ApiClock::kMonotonic) == LOCKSTEP_CLOCK_MONOTONIC &&
              static_cast<int>(lockstep::format::ApiClock::kRealtime) == LOCKSTEP_CLOCK_REALTIME &&
              static_cast<int>(lockstep::format::ApiClock::kGpuNs) == LOCKSTEP_CLOCK_GPU_NS &&
              static_cast<int>(lockstep::format::ApiClock::kGpuTicks) == LOCKSTEP_CLOCK_GPU_TICKS);

namespace api = lockstep::capture::api;
extern "C" __attribute__((visibility("default"))) const struct lockstep_api_v1 lockstep_api_v1;
const struct lockstep_api_v1 lockstep_api_v1 = {sizeof(struct lockstep_api_v1),
                                                1,
                                                api::declare_group,
                                                api::begin,
                                                api::end,
                                                api::set_gpu_times,
                                                api::step,
                                                api::mark,
                                                api::count};
