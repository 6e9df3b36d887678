// SPDX-License-Identifier: Apache-2.0
// The file of a capture library and the memory that its chunks are written in, handed out in places of a
// chunk each.
//
// The places are those of a segment (docs/decisions/0015), which outlives the process. A chunk gets its
// number, its index in the file, when its place is claimed. Stream retention: the writer thread
// (file_writer.h) puts it into the file and gives the place back. Ring retention: a place is its own number,
// and its chunk is in the file once the ring was written there.
//
// Memory is real before it is used: the keeper thread allocates ahead of need (`allocate_ahead`), so that no
// store can fail for want of space, and populates pages (`populate_ahead`), so that stores meet no page
// fault; a thread that outruns the second pays the faults, one that outruns the first loses events.
//
// Threads: `claim_chunk`, `claim_share` and `give_back` are lock-free and may be called on the event path by
// any thread. `make_chunk` may too, off the event path. What prepares or closes (`create`, `..._ahead`,
// `close`): one at a time.
//
// A ring allocates all of its size at once. A log gets more of it only while it holds less than kShare times
// what is left, and gives some back when others have come: N busy logs end up with equal parts and a rest for
// newcomers. What a new thread needs to begin with comes from that rest, or lies beside the ring when nothing
// is left.
//
// States of a file that a crash can leave: absent; empty, or with state kBuilding (nothing to read); kOpen
// (all published entries are whole, in the segment or in the file); kDiskFull (as kOpen, and the last write
// found no room); kSizeCap (as kOpen, capture stopped); kClosed.
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/core/file/own_file.h"
#include "capture/core/file/segment.h"
#include "capture/core/host/identity.h"
#include "capture/core/session/config.h"
#include "format/file_layout.h"

namespace lockstep::capture {

inline constexpr uint32_t kNoChunk = 0xffffffff;

class ProcessFile {
 public:
  // Creates `<dir>/<host>.<pid>.<start>.<source>.lks`, parents included, with a first stretch of chunks. On
  // failure the object stays unusable and `why` says what failed.
  bool create(const Config& config, const Identity& identity, format::Source source, char* why,
              size_t why_size);
  bool usable() const { return base_ != nullptr; }

  format::FileHeader* header() const { return reinterpret_cast<format::FileHeader*>(base_); }
  char* chunk(uint32_t place) const { return base_ + format::chunk_offset(place); }
  // Index in the file of the chunk in a place that is claimed: what `next` of a chunk header holds.
  uint32_t number(uint32_t place) const {
    return __atomic_load_n(&segment_.table()[place], __ATOMIC_RELAXED) - 1;
  }
  // As the segment's table says: 1 + the number, 0 for a place that is free, format::kPlaceClaimed.
  uint32_t entry(uint32_t place) const { return __atomic_load_n(&segment_.table()[place], __ATOMIC_ACQUIRE); }
  const char* path() const { return file_.path(); }
  OwnFile& own_file() { return file_; }
  Segment& segment() { return segment_; }
  bool ring() const { return ring_; }
  // What it may hold, in ring retention without what lies beside the ring.
  uint32_t cap_chunks() const { return cap_chunks_; }

  // A place for a chunk, or kNoChunk.
  uint32_t claim_chunk() {
    if (!ring_ && numbers_.load(std::memory_order_relaxed) >= cap_chunks_) return kNoChunk;
    uint32_t place = take_back();
    if (place == kNoChunk) place = take_new();
    return place == kNoChunk ? place : give_number(place);
  }
  // The same for definitions of a log, which nothing overwrites: half of a ring at most, of all logs.
  uint32_t claim_definitions() {
    if (ring_ && definitions_.load(std::memory_order_relaxed) >= cap_chunks_ / 2) return kNoChunk;
    const uint32_t place = claim_chunk();
    if (place != kNoChunk) definitions_.fetch_add(1, std::memory_order_relaxed);
    return place;
  }
  // As claim_chunk; when none is ready, allocates one for the caller alone.
  uint32_t make_chunk();
  // Ring: a chunk for a log that holds `owned` ones, unless that would be more than its share.
  uint32_t claim_share(uint32_t owned) { return owned < kShare * unclaimed() ? claim_chunk() : kNoChunk; }
  bool exceeds_share(uint32_t owned) const { return owned > kShare * unclaimed(); }
  // A place that nobody writes to any more, for others to claim.
  void give_back(uint32_t place);

  // Places in the mapping.
  uint32_t max_chunks() const { return max_chunks_; }
  // Places that were ever claimed.
  uint32_t used_places() const {
    const uint32_t used = claimed_.load(std::memory_order_relaxed);
    return used < max_chunks_ ? used : max_chunks_;
  }

  // Chunks of the file that were handed out.
  uint32_t claimed() const {
    const uint32_t numbers = (ring_ ? claimed_ : numbers_).load(std::memory_order_acquire);
    return numbers == kNoChunk ? ended_at_.load(std::memory_order_relaxed) : numbers;
  }
  bool at_cap() const { return !ring_ && numbers_.load(std::memory_order_relaxed) >= cap_chunks_; }
  // Places that can be claimed now.
  uint32_t unclaimed() const {
    uint32_t ready = ready_.load(std::memory_order_relaxed),
             claimed = claimed_.load(std::memory_order_relaxed);
    return (ready > claimed ? ready - claimed : 0) + returned_count_.load(std::memory_order_relaxed);
  }

  // Brings the number of allocated, unclaimed places up to `ahead`, as far as there are any. Sets the
  // header's state at the size cap.
  void allocate_ahead(uint32_t ahead);
  // Populates the next `ahead` chunks that are not yet claimed.
  void populate_ahead(uint32_t ahead);
  // No more chunks.
  void close() { stop_claims(); }
  // Fork child: forget the file without touching it.
  void abandon() {
    stop_claims();
    claimed_.store(kNoChunk, std::memory_order_relaxed);
  }
  format::FileState state() const {
    return static_cast<format::FileState>(__atomic_load_n(&header()->state, __ATOMIC_RELAXED));
  }
  void change_state(format::FileState from, format::FileState to) {
    auto known = static_cast<uint32_t>(from);
    __atomic_compare_exchange_n(&header()->state, &known, static_cast<uint32_t>(to), false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
  }
  void set_state(format::FileState state) {
    __atomic_store_n(&header()->state, static_cast<uint32_t>(state), __ATOMIC_RELEASE);
  }

 private:
  static constexpr uint32_t kShare = 4;

  bool open_unique(const Config& config, const Identity& identity, format::Source source, char* why,
                   size_t why_size);
  bool make_segment(const Config& config, const Identity& identity, format::Source source);
  bool allocate_header();
  void stop_claims() {
    ready_.store(0, std::memory_order_relaxed);
    // Who sees that there are no more has the number that there were.
    std::atomic<uint32_t>& last = ring_ ? claimed_ : numbers_;
    uint32_t numbers = last.load(std::memory_order_relaxed);
    do {
      if (numbers == kNoChunk) break;
      ended_at_.store(numbers, std::memory_order_relaxed);
    } while (
        !last.compare_exchange_weak(numbers, kNoChunk, std::memory_order_release, std::memory_order_relaxed));
    returned_.store(0, std::memory_order_relaxed);
  }
  uint32_t take_back();
  uint32_t take_new() {
    uint32_t limit = ready_.load(std::memory_order_acquire);
    uint32_t next = claimed_.load(std::memory_order_relaxed);
    do {
      if (next >= limit) return kNoChunk;
    } while (!claimed_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
    return next;
  }
  uint32_t give_number(uint32_t place);
  void push(uint32_t place);

  char* base_ = nullptr;
  OwnFile file_;
  Segment segment_;
  uint32_t cap_chunks_ = 0;    // of the file: what was asked for
  uint32_t max_chunks_ = 0;    // places in the mapping, also those beside
  uint32_t fixed_chunks_ = 0;  // places that are allocated ahead; those beside are made one by one
  bool ring_ = false;
  std::atomic<uint32_t> claimed_{0};   // places
  std::atomic<uint32_t> numbers_{0};   // stream: handed out; kNoChunk: no more of them
  std::atomic<uint32_t> ended_at_{0};  // what numbers_ was before, in a ring claimed_
  std::atomic<uint32_t> ready_{0};     // places that are allocated
  std::atomic<uint32_t> definitions_{0};
  uint32_t populated_ = 0;
  // Places given back, as a stack. The head holds 1 + the top's index, and in its upper half a count of
  // changes, so that a head seen twice is the same stack.
  std::atomic<uint64_t> returned_{0};
  std::atomic<uint32_t> returned_count_{0};
  uint32_t* below_ = nullptr;  // by place: 1 + the place below it in the stack
};

}  // namespace lockstep::capture
