// SPDX-License-Identifier: Apache-2.0
// One thread's log: the event path. Appending an event is: read the clock, fill a record at the cursor, publish.
// No lock, no allocation, no system call; a full chunk costs one compare-and-swap, or in ring retention the reuse of
// this log's own oldest chunk. What may be slow happens once per thread (registration) or once per new name.
//
// Threads: a log belongs to one thread, and `current()` finds it; after the thread ends the slot, its definitions and
// its half-full chunk go to the next new thread. Other threads never write to it.
//
//   window[chunk_no % kWindow] -> address of this log's newest chunks, so that a handle finds its record for an
//   in-place update; older targets get a StateRecord instead.
#pragma once
#include <cstdint>
#include <cstring>

#include "capture/core/clock.h"
#include "capture/core/key_table.h"
#include "capture/core/losses.h"
#include "format/definitions.h"
#include "format/records.h"

namespace lockstep::capture {

// What an operation is; the key of the shape cache. Pointers to the host's text: compared by address first.
struct ShapeKey {
  const char* func;
  const char* datatype;
  const char* algo;
  const char* proto;
  int32_t root;
  bool operator==(const ShapeKey&) const = default;
};
struct ShapeRef {
  uint16_t id;            // format::kNoShape.. ; kShapeUnknown when the table is full
  uint8_t element_bytes;  // of the datatype, 1 if unknown
};

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
  // What became of a handle that is not in this thread's window: never given to the host, its record overwritten by
  // newer ones (ring retention), or its record in the file.
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
    // A handle that was never issued may point into a record: what is written there must at least stay in the chunk.
    if (__builtin_expect(at + sizeof(format::ApiOpRecord) > chunk + format::kChunkBytes, 0) &&
        !fits(unit, handle))
      return nullptr;
    auto* head = reinterpret_cast<format::RecordHead*>(at);
    return static_cast<uint32_t>(head->kind) == format::handle_kind(handle) ? head : nullptr;
  }

  // Ring: an event of this log that was still open when its chunk was overwritten moved on with the newest records.
  // Where it is now, for locate(); 0 if the handle is not one of those.
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
  // The caller's log, for a state or stop that cannot be written into the event's own record; nullptr if there is none,
  // or no such event (counted).
  static ThreadLog* log_for_late(uint64_t handle);

  // Distance back to a parent in this log; kFarLink if it needs a LinkRecord; 0 if there is none.
  uint32_t distance(uint64_t parent, const char* child) const {
    if (format::handle_log(parent) != id_) return format::handle_log(parent) == 0 ? 0 : format::kSaturated;
    uint64_t position =
        format::handle_position(handle_base_) + static_cast<uint64_t>(child - chunk_) / format::kUnitBytes;
    uint64_t back = position - format::handle_position(parent);
    return back == 0 || back >= format::kSaturated ? format::kSaturated : static_cast<uint32_t>(back);
  }
  void append_link(uint64_t child, uint64_t parent);
  void append_state(uint64_t target, uint16_t state, uint64_t ticks, uint64_t value, uint32_t extra);
  // The stop of an event whose own record cannot be told: one of another log, or older than the window. In ring retention
  // that event no longer moves on; the first for a log then maps memory, a bit for each unit that the log can hold.
  void append_late_stop(uint64_t target, uint64_t ticks);
  void append_user_tag(uint64_t child, uint64_t tag);
  // A mark of this name, whose text may be another one next time. Not on the event path.
  void append_mark(const char* name);

  ShapeRef shape(const ShapeKey& key) {
    ShapeEntry& entry = shapes_[hash_of(key) >> 58];
    return __builtin_expect(entry.ref.id != 0 && entry.key == key, 1) ? entry.ref : find_shape(key);
  }
  uint16_t stream(uint64_t stream) {
    if (stream == 0) return 0;
    StreamEntry& entry = streams_[(stream >> 4 ^ stream >> 12) % kStreams];
    return __builtin_expect(entry.stream == stream, 1) ? entry.id : find_stream(stream);
  }
  // The newest record of a proxy step, which the host may start again while it polls; 0 if it is not remembered. Each
  // set is a cache line, the latest used first, so that steps that are polled stay and those that pass by do not.
  static uint64_t step_key(uint64_t parent, int32_t step) {
    return (parent << 16 ^ static_cast<uint32_t>(step)) * 0x9e3779b97f4a7c15;
  }
  uint64_t recent_step(uint64_t key) {
    StepEntry* set = steps_[key >> 58];
    for (uint32_t way = 0; way < kStepWays; ++way) {
      if (set[way].key != key || set[way].handle == 0) continue;
      uint64_t handle = set[way].handle;
      for (; way > 0; --way) set[way] = set[way - 1];
      set[0] = {key, handle};
      return handle;
    }
    return 0;
  }
  void remember_step(uint64_t key, uint64_t handle) {
    StepEntry* set = steps_[key >> 58];
    for (uint32_t way = kStepWays - 1; way > 0; --way) set[way] = set[way - 1];
    set[0] = {key, handle};
  }

  // Number of a kernel's name, defined when it is new to the log; 0 for none, and where there is no room (counted).
  uint32_t kernel_name(const char* name);
  // The same of a range's, of `length` bytes below format::kMaxRangeNameBytes. Programs make up names as they go: a log
  // has kMostRangeNames, and in ring retention those of all logs take 1 / kRangeNamesOfRing of the ring.
  uint32_t range_name(const char* name, size_t length);
  static constexpr uint32_t kMostRangeNames = 16384, kRangeNamesOfRing = 8;

  uint32_t number() const { return id_; }
  // Counts the threads that have had this log: what is kept of one of them is not the next one's.
  uint32_t owner() const { return owner_; }

  void lose(Loss kind, uint64_t count = 1) {
    __atomic_store_n(&losses_[kind], losses_[kind] + count, __ATOMIC_RELAXED);
  }
  // The histogram cell of a key (ring retention), or nullptr when there is no room (counted). `shape_log`: whose shape
  // number the key holds.
  format::HistogramCell* histogram_cell(uint64_t key, uint32_t shape_log, uint64_t ticks);

 private:
  static constexpr uint32_t kShapes = 64, kStreams = 16, kStepSets = 64, kStepWays = 4, kHistogramProbes = 16;
  struct ShapeEntry {
    ShapeKey key;
    ShapeRef ref;
  };
  struct StreamEntry {
    uint64_t stream;
    uint16_t id;
  };
  struct StepEntry {
    uint64_t key;
    uint64_t handle;
  };
  static constexpr uint32_t kMoved = 32;
  struct MovedEvent {
    uint64_t issued;  // as the host knows it; 0 free; atomic, for look_up()
    uint64_t now;
    uint64_t ended;  // the one issued, once note_end() was told; atomic
  };
  struct OpenEvents;

  static uint64_t hash_of(const ShapeKey& key) {
    auto mix = reinterpret_cast<uintptr_t>(key.func) ^ reinterpret_cast<uintptr_t>(key.datatype) << 1 ^
               reinterpret_cast<uintptr_t>(key.algo) << 2 ^ reinterpret_cast<uintptr_t>(key.proto) << 3 ^
               static_cast<uintptr_t>(static_cast<uint32_t>(key.root)) << 4;
    return mix * 0x9e3779b97f4a7c15;
  }
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
  char* next_chunk();
  uint32_t take_chunk(OpenEvents* open);
  uint32_t drop_oldest(OpenEvents* open);
  static void note_end(uint64_t handle);
  bool has_noted_end(uint64_t handle) const;
  void forget_ends(uint64_t chunk_no);
  void move_open(const OpenEvents& open);
  uint64_t append_moved(const char* bytes);
  void start_histogram(uint32_t index);
  char* open_chunk(uint32_t index, format::Purpose purpose, uint32_t chunk_no);
  char* room_for_definition(size_t bytes);
  template <class Definition>
  Definition* define();
  ShapeRef find_shape(const ShapeKey& key);
  ShapeRef define_shape(const ShapeKey& key);
  uint16_t find_stream(uint64_t stream);
  uint16_t define_stream(uint64_t stream);
  struct Names;
  uint32_t find_name(Names* names, format::Def kind, const char* name, size_t length);
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
  ShapeEntry shapes_[kShapes];
  StreamEntry streams_[kStreams];
  alignas(64) StepEntry steps_[kStepSets][kStepWays];
  uint32_t tid_;  // of the owner
  // off the event path
  KeyTable<ShapeKey, ShapeRef> known_shapes_;
  KeyTable<uint64_t, uint16_t> known_streams_;
  struct Names {
    KeyTable<uint64_t, uint32_t> known;  // by a hash of the name
    uint32_t next;
  };
  Names kernel_names_, range_names_;
  uint32_t oldest_index_, owned_;
  uint32_t spare_index_;  // ring: the log's second chunk, so that there is always a window
  MovedEvent moved_[kMoved];
  char* defs_;
  uint32_t defs_used_;  // bytes
  uint32_t defs_no_;
  uint32_t next_shape_, next_stream_;
  uint32_t owner_;
  format::ChunkHeader* defs_chunk_;
  char* histogram_;
  uint64_t newest_chunk_no_, oldest_chunk_no_;  // atomic; for look_up()
  uint64_t* ends_;  // atomic, as what it points to; nullptr until note_end() needs it
  bool in_use_;     // atomic; the slot has a thread
  bool started_;    // the slot has chunks

  friend struct LogTable;
};

}  // namespace lockstep::capture
