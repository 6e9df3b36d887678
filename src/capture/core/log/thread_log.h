// SPDX-License-Identifier: Apache-2.0
// One thread's log: the event path. Appending an event is: read the clock, fill a record at the cursor,
// publish. No lock, no allocation, no system call; a full chunk costs one compare-and-swap, or in ring
// retention the reuse of this log's own oldest chunk. What may be slow happens once per thread (registration)
// or once per new name.
//
// Threads: a log belongs to one thread, and `current()` finds it; after the thread ends the slot, its
// definitions and its half-full chunk go to the next new thread. Other threads never write to it.
//
//   window[chunk_no % kWindow] -> address of this log's newest chunks, so that a handle finds its record for
//   an in-place update; older targets get a StateRecord instead.
#pragma once
#include <cstdint>
#include <cstring>

#include "capture/core/clock.h"
#include "capture/core/log/histogram_chunk.h"
#include "capture/core/log/interning.h"
#include "capture/core/log/moved_events.h"
#include "capture/core/log/step_cache.h"
#include "capture/core/losses.h"
#include "format/definitions.h"
#include "format/records.h"

namespace lockstep::capture {

class ThreadLog {
 public:
  static constexpr uint32_t kWindow = 64;

  // This thread's log, or nullptr if the thread has none (yet).
  static ThreadLog* current() { return tls_log; }
  // Registers the calling thread. nullptr when capture is not running or no slot is free (counted).
  static ThreadLog* register_thread();
  // As current(), registering when needed.
  static ThreadLog* get() {
    ThreadLog* log = tls_log;
    return __builtin_expect(log != nullptr, 1) ? log : register_thread();
  }
  static void forget_current() { tls_log = nullptr; }
  // Once, before any thread may register: of two that came first at once, neither waits for the other.
  static void prepare();
  // What became of a handle that is not in this thread's window: never given to the host, its record
  // overwritten by newer ones (ring retention), or its record in the file.
  enum class Issued { kNever, kOverwritten, kKept };
  static Issued look_up(uint64_t handle);
  // Threads that have a log now.
  static uint32_t threads();
  // The number of the oldest chunk in which the log's thread may still fill something in.
  static uint64_t window_begin(uint32_t log);

  // Room for a record, its head cleared but unpublished; nullptr if there is none (counted).
  template <class Record>
  Record* reserve() {
    char* at = cursor_;
    if (__builtin_expect(at + sizeof(Record) > limit_, 0)) {
      at = next_chunk();
      if (at == nullptr) return nullptr;
    }
    return reinterpret_cast<Record*>(at);
  }
  // Makes a filled record visible and returns its handle. `record` came from the last reserve().
  template <class Record>
  uint64_t publish(Record* record, format::Kind kind, uint8_t flags, uint16_t link, uint32_t stop_after = 0) {
    return publish_bytes(reinterpret_cast<char*>(record), sizeof(Record), kind, flags, link, stop_after);
  }
  // Stores an event's stop: it is open, and in this thread's reach. In one store with the flag that says so,
  // after all late fields that were filled in before.
  static void store_stop(format::RecordHead* head, uint32_t after) {
    auto* tag = reinterpret_cast<uint64_t*>(&head->stop_after);
    __atomic_store_n(tag, *tag | after | uint64_t{format::kFlagStopped} << 40, __ATOMIC_RELEASE);
  }
  // The handle that a record at the cursor will get.
  uint64_t handle_at(const char* at, format::Kind kind) const {
    return uint64_t{static_cast<uint8_t>(kind)} << (format::kHandlePositionBits + format::kHandleLogBits) |
           (handle_base_ + static_cast<uint64_t>(at - chunk_) / format::kUnitBytes);
  }

  // The record behind a handle if this thread may fill it in place; else nullptr.
  format::RecordHead* locate(uint64_t handle) {
    uint64_t position = format::handle_position(handle);
    uint64_t chunk_no = position / format::kUnitsPerChunk;
    uint64_t unit = position % format::kUnitsPerChunk;
    if (format::handle_log(handle) != id_ || unit < format::kChunkHeaderUnits) return nullptr;
    char* chunk = chunk_;
    if (__builtin_expect(chunk_no != chunk_no_, 0)) {
      if (chunk_no > chunk_no_ || chunk_no < oldest_in_window_) return nullptr;
      chunk = window_[chunk_no % kWindow];
    }
    auto* at = chunk + unit * format::kUnitBytes;
    if (chunk_no == chunk_no_ && at >= cursor_) return nullptr;
    // A handle that was never issued may point into a record: what is written there must at least stay in the
    // chunk.
    if (__builtin_expect(at + sizeof(format::ApiOpRecord) > chunk + format::kChunkBytes, 0) &&
        !fits(unit, handle))
      return nullptr;
    auto* head = reinterpret_cast<format::RecordHead*>(at);
    return static_cast<uint32_t>(head->kind) == format::handle_kind(handle) ? head : nullptr;
  }

  // Ring: an event of this log that was still open when its chunk was overwritten moved on with the newest
  // records. Where it is now, for locate(); 0 if the handle is not one of those.
  uint64_t moved(uint64_t handle) const;

  // As locate(), also for an event that has moved.
  format::RecordHead* find(uint64_t handle) {
    format::RecordHead* head = locate(handle);
    if (__builtin_expect(head == nullptr, 0)) {
      const uint64_t now = moved(handle);
      head = now == 0 ? nullptr : locate(now);
    }
    return head;
  }
  // The caller's log, for a state or stop that cannot be written into the event's own record; nullptr if
  // there is none, or no such event (counted).
  static ThreadLog* log_for_late(uint64_t handle);

  // Distance back to a parent in this log; kFarLink if it needs a LinkRecord; 0 if there is none.
  uint32_t distance(uint64_t parent, const char* child) const {
    if (format::handle_log(parent) != id_) return format::handle_log(parent) == 0 ? 0 : format::kSaturated;
    uint64_t position =
        format::handle_position(handle_base_) + static_cast<uint64_t>(child - chunk_) / format::kUnitBytes;
    uint64_t back = position - format::handle_position(parent);
    return back == 0 || back >= format::kSaturated ? format::kSaturated : static_cast<uint32_t>(back);
  }
  [[gnu::cold, gnu::noinline]] void append_link(uint64_t child, uint64_t parent);
  [[gnu::cold, gnu::noinline]] void append_state(uint64_t target, uint16_t state, uint64_t ticks,
                                                 uint64_t value, uint32_t extra);
  // The stop of an event whose own record cannot be told: one of another log, or older than the window. In
  // ring retention that event no longer moves on; the first for a log then maps memory, a bit for each unit
  // that the log can hold.
  [[gnu::cold, gnu::noinline]] void append_late_stop(uint64_t target, uint64_t ticks);
  [[gnu::noinline]] void append_user_tag(uint64_t child, uint64_t tag);
  // A GpuTimes record of the event was written: it is open no more. In ring retention as append_late_stop().
  static void note_times(uint64_t handle);
  // A mark of this name, whose text may be another one next time. Not on the event path.
  void append_mark(const char* name);

  ShapeRef shape(const ShapeKey& key) {
    const ShapeRef* known = names_.cached_shape(key);
    return __builtin_expect(known != nullptr, 1) ? *known : find_shape(key);
  }
  uint16_t stream(uint64_t stream) {
    if (stream == 0) return 0;
    const uint16_t known = names_.cached_stream(stream);
    return __builtin_expect(known != 0, 1) ? known : find_stream(stream);
  }
  StepCache& steps() { return steps_; }

  // Number of a kernel's name, defined when it is new to the log; 0 for none, and where there is no room
  // (counted).
  uint32_t kernel_name(const char* name);
  // The same of a range's, of `length` bytes below format::kMaxRangeNameBytes (Interning says how many there
  // are).
  uint32_t range_name(const char* name, size_t length);

  uint32_t number() const { return id_; }
  // Counts the threads that have had this log: what is kept of one of them is not the next one's.
  uint32_t owner() const { return owner_; }

  void lose(Loss kind, uint64_t count = 1) {
    __atomic_store_n(&losses_[kind], losses_[kind] + count, __ATOMIC_RELAXED);
  }
  // The histogram cell of a key (ring retention), or nullptr when there is no room (counted). `shape_log`:
  // whose shape number the key holds.
  format::HistogramCell* histogram_cell(uint64_t key, uint32_t shape_log, uint64_t ticks);

 private:
  static bool fits(uint64_t unit, uint64_t handle) {
    return unit +
               format::record_bytes(static_cast<uint8_t>(format::handle_kind(handle))) / format::kUnitBytes <=
           format::kLastUnit;
  }
  [[gnu::always_inline]] uint64_t publish_bytes(char* at, size_t bytes, format::Kind kind, uint8_t flags,
                                                uint16_t link, uint32_t stop_after) {
    char* next = at + bytes;
    constexpr size_t kTag = offsetof(format::RecordHead, stop_after);
    __atomic_store_n(reinterpret_cast<uint64_t*>(next + kTag), uint64_t{0}, __ATOMIC_RELAXED);
    uint64_t tag = uint64_t{stop_after} | uint64_t{static_cast<uint8_t>(kind)} << 32 | uint64_t{flags} << 40 |
                   uint64_t{link} << 48;
    __atomic_store_n(reinterpret_cast<uint64_t*>(at + kTag), tag, __ATOMIC_RELEASE);
    cursor_ = next;
    ++records_;
    return handle_at(at, kind);
  }
  bool start(uint32_t id);
  void leave_window();
  void move_window(uint32_t most);
  void adopt_thread();
  Issued issued(uint64_t handle) const;
  char* next_chunk();
  // ring_retention.cc
  uint32_t take_chunk(OpenEvents* open);
  uint32_t drop_oldest(OpenEvents* open);
  void move_open(const OpenEvents& open);
  uint64_t append_moved(const char* bytes);
  static void note_end(uint64_t handle);

  LogOwner log_owner() const { return {id_, tid_}; }
  void open_records(uint32_t index);
  ShapeRef find_shape(const ShapeKey& key);
  uint16_t find_stream(uint64_t stream);
  static void release(void* log);

  static constinit thread_local ThreadLog* tls_log;

  // event path, one or two cache lines
  char* cursor_;
  char* limit_;
  char* chunk_;
  uint64_t handle_base_;  // log and position of the chunk's first unit
  uint64_t chunk_no_;
  uint64_t oldest_in_window_;
  uint64_t* losses_;
  uint32_t id_;       // 1 + slot
  uint32_t records_;  // in the current chunk
  char* window_[kWindow];
  Interning names_;
  StepCache steps_;
  uint32_t tid_;  // of the owner
  // off the event path
  uint32_t owner_;
  uint32_t oldest_index_, owned_;
  uint32_t spare_index_;  // ring: the log's second chunk, so that there is always a window
  MovedEvents moved_;
  HistogramChunk histogram_;
  uint64_t newest_chunk_no_, oldest_chunk_no_;  // atomic; for look_up()
  bool started_;                                // the slot has chunks
};

}  // namespace lockstep::capture
