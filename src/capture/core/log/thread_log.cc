// SPDX-License-Identifier: Apache-2.0
// The slow side of a log: registration, new chunks, and handles that are not in this thread's window. A log
// outlives its thread and is given to the next one, half-full chunk included: frameworks make and end
// thousands of threads, and a chunk for each would be mostly empty.
#include "capture/core/log/thread_log.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/log/log_table.h"
#include "capture/core/session/session.h"

namespace lockstep::capture {

constinit thread_local ThreadLog* ThreadLog::tls_log = nullptr;

static Loss loss_of_no_chunk() {
  if (Session::get().phase() == Phase::kClosed) return kLoss_closed;
  return Session::get().loss_of_no_place();
}

uint64_t ThreadLog::window_begin(uint32_t number) {
  const ThreadLog* log = LogTable::get().find(number);
  return log == nullptr ? 0 : __atomic_load_n(&log->oldest_in_window_, __ATOMIC_ACQUIRE);
}

uint32_t ThreadLog::threads() { return LogTable::get().taken(); }

void ThreadLog::prepare() { LogTable::get().make_key(release); }

void ThreadLog::release(void* log) {
  tls_log = nullptr;
  static_cast<ThreadLog*>(log)->leave_window();
  LogTable::get().give_back(static_cast<ThreadLog*>(log));
}

ThreadLog* ThreadLog::register_thread() {
  Session& session = Session::get();
  if (!session.running()) {
    if (session.phase() == Phase::kClosed) session.lose(kLoss_closed);
    if (session.phase() == Phase::kForked) session.lose(kLoss_after_fork);
    return nullptr;
  }
  LogTable& table = LogTable::get();
  ThreadLog* log = table.take();
  if (log == nullptr) {
    session.lose(kLoss_no_log);
    return nullptr;
  }
  log->tid_ = static_cast<uint32_t>(syscall(SYS_gettid));
  if (!log->started_ && !log->start(table.number(log))) {
    table.give_back(log);
    session.lose(loss_of_no_chunk());
    return nullptr;
  }
  session.thread_registered();
  log->adopt_thread();
  table.at_thread_end(log);
  tls_log = log;
  return log;
}

// The thread fills nothing in any more.
void ThreadLog::leave_window() {
  if (!Session::get().file().ring()) __atomic_store_n(&oldest_in_window_, chunk_no_, __ATOMIC_RELEASE);
}

ThreadLog::Issued ThreadLog::look_up(uint64_t handle) {
  const ThreadLog* log = LogTable::get().find(format::handle_log(handle));
  if (log == nullptr || !format::is_event(static_cast<uint8_t>(format::handle_kind(handle))) ||
      format::handle_position(handle) % format::kUnitsPerChunk < format::kChunkHeaderUnits) {
    return Issued::kNever;
  }
  return log->issued(handle);
}

ThreadLog::Issued ThreadLog::issued(uint64_t handle) const {
  const uint64_t chunk_no = format::handle_position(handle) / format::kUnitsPerChunk;
  if (chunk_no > __atomic_load_n(&newest_chunk_no_, __ATOMIC_RELAXED)) return Issued::kNever;
  if (chunk_no >= __atomic_load_n(&oldest_chunk_no_, __ATOMIC_RELAXED)) return Issued::kKept;
  return moved_.has(handle) ? Issued::kKept : Issued::kOverwritten;
}

ThreadLog* ThreadLog::log_for_late(uint64_t handle) {
  ThreadLog* log = get();
  if (log == nullptr) return nullptr;
  const Issued issued = look_up(handle);
  if (issued == Issued::kKept) return log;
  log->lose(issued == Issued::kOverwritten ? kLoss_stale_target : kLoss_unknown_handle);
  return nullptr;
}

bool ThreadLog::start(uint32_t id) {
  ProcessFile& file = Session::get().file();
  // There since an attempt that found a place for definitions alone: a chunk that was claimed is published.
  if (losses_ == nullptr) {
    const uint32_t defs = file.make_chunk();
    if (defs == kNoChunk) return false;
    id_ = id;
    names_.begin(defs, log_owner());
    auto* info = names_.chunks().define<format::LogDef>();
    losses_ = info->losses;
    publish_definition(info, format::Def::kLog, id_);
  }
  const uint32_t records = file.make_chunk();
  if (records == kNoChunk) return false;
  oldest_index_ = records;
  owned_ = 1;
  chunk_no_ = 0;
  __atomic_store_n(&oldest_in_window_, uint64_t{0}, __ATOMIC_RELAXED);
  open_records(records);
  spare_index_ = kNoChunk;
  if (file.ring()) {
    spare_index_ = file.make_chunk();
    histogram_.begin(file.make_chunk(), log_owner());
  }
  started_ = true;
  return true;
}

void ThreadLog::adopt_thread() {
  ++owner_;
  names_.chunks().set_owner(log_owner());
  auto* thread = names_.chunks().define<format::ThreadDef>();
  if (thread == nullptr) return Session::get().lose(kLoss_meta_full);
  thread->from_position = format::handle_position(handle_at(cursor_, format::Kind::kNone));
  prctl(PR_GET_NAME, thread->name);
  thread->pthread = reinterpret_cast<uint64_t>(pthread_self());
  publish_definition(thread, format::Def::kThread, tid_);
}

// The chunk of number chunk_no_, to be written from its begin on.
void ThreadLog::open_records(uint32_t index) {
  chunk_ = open_chunk(index, format::Purpose::kRecords, static_cast<uint32_t>(chunk_no_), log_owner());
  window_[chunk_no_ % kWindow] = chunk_;
  cursor_ = chunk_ + sizeof(format::ChunkHeader);
  limit_ = chunk_ + uint64_t{format::kLastUnit} * format::kUnitBytes;
  handle_base_ = uint64_t{id_} << format::kHandlePositionBits | chunk_no_ * format::kUnitsPerChunk;
  records_ = 0;
}

char* ThreadLog::next_chunk() {
  ProcessFile& file = Session::get().file();
  auto* full = reinterpret_cast<format::ChunkHeader*>(chunk_);
  __atomic_store_n(&full->records, records_, __ATOMIC_RELEASE);  // never more than can be seen
  OpenEvents open;
  uint32_t index = take_chunk(&open);
  if (index == kNoChunk) {
    const Loss why = loss_of_no_chunk();
    why < format::kLossKinds ? lose(why) : Session::get().lose(why);
    return nullptr;
  }
  ++chunk_no_;
  // A log with a single chunk begins anew in the same one, which must not name itself.
  if (owned_ > 1) name_next(chunk_, index);
  __atomic_store_n(&oldest_chunk_no_, chunk_no_ + 1 - owned_, __ATOMIC_RELAXED);
  open_records(index);
  move_window(owned_);
  __atomic_store_n(&newest_chunk_no_, chunk_no_, __ATOMIC_RELAXED);
  if (file.ring()) move_open(open);
  return cursor_;
}

// The newest chunks, in which events can be filled in. In stream retention they hold places that others may
// need: a log keeps a quarter of what is free, and never fewer than two chunks, as what was located before
// the next one is filled in after it.
void ThreadLog::move_window(uint32_t most) {
  const ProcessFile& file = Session::get().file();
  if (most > kWindow) most = kWindow;
  if (!file.ring() && most > 2) {
    const uint32_t share = file.unclaimed() / 4;
    if (most > share) most = share > 2 ? share : 2;
  }
  uint64_t begin = chunk_no_ + 1 - most;
  if (begin < oldest_in_window_) begin = oldest_in_window_;
  __atomic_store_n(&oldest_in_window_, begin, __ATOMIC_RELEASE);
}

// A key that cannot be defined: each operation that has to do without its shape is counted.
ShapeRef ThreadLog::find_shape(const ShapeKey& key) {
  const ShapeRef ref = names_.find_shape(key);
  if (ref.id == format::kShapeUnknown) lose(kLoss_shape_table_full);
  return ref;
}

uint16_t ThreadLog::find_stream(uint64_t stream) {
  const uint16_t id = names_.find_stream(stream);
  if (id == 0) lose(kLoss_shape_table_full);
  return id;
}

uint32_t ThreadLog::kernel_name(const char* name) {
  if (name == nullptr) return 0;
  const uint32_t id = names_.kernel_name(name, strnlen(name, format::kMaxKernelNameBytes - 1));
  if (id == 0) lose(kLoss_shape_table_full);
  return id;
}

uint32_t ThreadLog::range_name(const char* name, size_t length) {
  if (length == 0) return 0;
  const uint32_t id = names_.range_name(name, length);
  if (id == 0) lose(kLoss_shape_table_full);
  return id;
}

void ThreadLog::append_link(uint64_t child, uint64_t parent) {
  auto* record = reserve<format::LinkRecord>();
  if (record == nullptr) return;
  record->head.start = 0;
  record->child = child;
  record->parent = parent;
  publish(record, format::Kind::kLink, 0, 0);
}

void ThreadLog::append_user_tag(uint64_t child, uint64_t tag) {
  auto* record = reserve<format::UserTagRecord>();
  if (record == nullptr) return;
  record->head.start = 0;
  record->child = child;
  record->tag = tag;
  publish(record, format::Kind::kUserTag, 0, 0);
}

void ThreadLog::append_mark(const char* name) {
  // Past the cache, which compares addresses: the text may be another one next time.
  const ShapeRef shape =
      names_.define_shape({.func = name, .datatype = nullptr, .algo = nullptr, .proto = nullptr, .root = 0});
  auto* record = reserve<format::MarkRecord>();
  if (record == nullptr) return;
  if (shape.id == format::kShapeUnknown) lose(kLoss_shape_table_full);
  record->head.start = read_ticks();
  record->value = 0;
  record->shape = shape.id;
  record->is_step = 0;
  record->reserved0 = 0;
  publish(record, format::Kind::kMark, 0, 0);
}

void ThreadLog::append_state(uint64_t target, uint16_t state, uint64_t ticks, uint64_t value,
                             uint32_t extra) {
  auto* record = reserve<format::StateRecord>();
  if (record == nullptr) return;
  record->head.start = ticks;
  record->target = target;
  record->value = value;
  publish(record, format::Kind::kState, 0, state, extra);
}

void ThreadLog::append_late_stop(uint64_t target, uint64_t ticks) {
  append_state(target, format::kStateStop, ticks, 0, 0);
  if (Session::get().file().ring()) note_end(target);
}

void ThreadLog::note_times(uint64_t handle) {
  if (Session::get().file().ring()) note_end(handle);
}

format::HistogramCell* ThreadLog::histogram_cell(uint64_t key, uint32_t shape_log, uint64_t ticks) {
  format::HistogramCell* cell = histogram_.cell(key, shape_log, ticks);
  if (cell == nullptr) lose(kLoss_histogram_full);
  return cell;
}

}  // namespace lockstep::capture
