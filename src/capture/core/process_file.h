// SPDX-License-Identifier: Apache-2.0
// The file that a capture library writes: a shared mapping, handed out in chunks. What is stored here survives the
// death of the process, as the kernel holds the pages; nothing has to be flushed.
//
// Space is real before it is used: the keeper thread allocates chunks on disk ahead of need (`allocate_ahead`), so that
// no store can fail for want of space, and populates their pages (`populate_ahead`), so that stores meet no page fault;
// a writer that outruns the second pays the faults, one that outruns the first loses events.
//
// Threads: `claim_chunk`, `claim_share` and `give_back` are lock-free and may be called on the event path by any thread.
// `make_chunk` may too, off the event path. What prepares or closes (`create`, `..._ahead`, `close`): one at a time.
//
// Ring retention allocates all of its size at once. A log gets more of it only while it holds less than kShare times
// what is left, and gives some back when others have come: N busy logs end up with equal parts and a rest for newcomers.
// What a new thread needs to begin with comes from that rest, or lies beside the ring when nothing is left.
//
// Crash-visible states of a file: absent; header with state kBuilding (nothing to read); kOpen (all published entries
// are whole, the tail may hold unused chunks); kDiskFull and kSizeCap (as kOpen, capture stopped); kClosed (trimmed).
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/core/config.h"
#include "capture/core/identity.h"
#include "format/file_layout.h"

namespace lockstep::capture {

inline constexpr uint32_t kNoChunk = 0xffffffff;

class ProcessFile {
 public:
  // Creates `<dir>/<host>.<pid>.<start>.<source>.lks`, parents included, with a first stretch of chunks. On failure
  // the object stays unusable and `why` says what failed.
  bool create(const Config& config, const Identity& identity, format::Source source, char* why,
              size_t why_size);
  bool usable() const { return base_ != nullptr; }

  format::FileHeader* header() const { return reinterpret_cast<format::FileHeader*>(base_); }
  char* chunk(uint32_t index) const {
    return base_ + format::kHeaderBytes + uint64_t{index} * format::kChunkBytes;
  }
  const char* path() const { return path_; }
  bool ring() const { return ring_; }
  // What it may hold, in ring retention without what lies beside the ring.
  uint32_t cap_chunks() const { return cap_chunks_; }

  // The next allocated chunk, or kNoChunk.
  uint32_t claim_chunk() {
    if (ring_) {
      uint32_t index = take_back();
      if (index != kNoChunk) return index;
    }
    uint32_t limit = ready_.load(std::memory_order_acquire);
    uint32_t next = claimed_.load(std::memory_order_relaxed);
    do {
      if (next >= limit) return kNoChunk;
    } while (!claimed_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
    return next;
  }
  // As claim_chunk; when none is ready, allocates one for the caller alone, which may take the file system a while.
  uint32_t make_chunk();
  // Ring: a chunk for a log that holds `owned` ones, unless that would be more than its share.
  uint32_t claim_share(uint32_t owned) { return owned < kShare * unclaimed() ? claim_chunk() : kNoChunk; }
  bool exceeds_share(uint32_t owned) const { return owned > kShare * unclaimed(); }
  // Ring: a chunk that nobody writes to any more, for others to claim.
  void give_back(uint32_t index);

  // What the mapping holds at most.
  uint32_t max_chunks() const { return max_chunks_; }
  // Claimed chunks that the file holds: what lies behind its end must not be touched. 0 if that is not known.
  uint32_t claimed_in_file();

  uint32_t claimed() const { return claimed_.load(std::memory_order_relaxed); }
  // Chunks that can be claimed now.
  uint32_t unclaimed() const {
    uint32_t ready = ready_.load(std::memory_order_relaxed),
             claimed = claimed_.load(std::memory_order_relaxed);
    return (ready > claimed ? ready - claimed : 0) + returned_count_.load(std::memory_order_relaxed);
  }

  // Brings the number of allocated, unclaimed chunks up to `ahead`. Sets the header's state when space ends.
  void allocate_ahead(uint32_t ahead);
  // Populates the next `ahead` chunks that are not yet claimed.
  void populate_ahead(uint32_t ahead);
  // No more chunks; gives unused ones back to the file system and marks the file closed.
  void close();
  // Fork child: forget the file without touching it.
  void abandon() {
    ready_.store(0, std::memory_order_relaxed);
    claimed_.store(kNoChunk, std::memory_order_relaxed);
    returned_.store(0, std::memory_order_relaxed);
  }
  format::FileState state() const {
    return static_cast<format::FileState>(__atomic_load_n(&header()->state, __ATOMIC_RELAXED));
  }
  void set_state(format::FileState state) {
    __atomic_store_n(&header()->state, static_cast<uint32_t>(state), __ATOMIC_RELEASE);
  }

 private:
  static constexpr uint32_t kShare = 4;

  bool open_unique(const Config& config, const Identity& identity, format::Source source, char* why,
                   size_t why_size);
  bool map(uint64_t bytes);
  bool allocate(uint64_t offset, uint64_t bytes);
  void stop_for_space();
  int own_descriptor();
  uint32_t take_back();

  char* base_ = nullptr;
  std::atomic<int> fd_{-1};
  uint64_t device_ = 0, inode_ = 0;
  uint32_t cap_chunks_ = 0;  // what was asked for
  uint32_t max_chunks_ = 0;  // what the mapping holds: in ring retention also what lies beside the ring
  bool ring_ = false;
  std::atomic<uint32_t> claimed_{0};
  std::atomic<uint32_t> ready_{0};  // allocated
  uint32_t populated_ = 0;
  // Ring: chunks given back, as a stack. The head holds 1 + the top's index, and in its upper half a count of changes, so
  // that a head seen twice is the same stack.
  std::atomic<uint64_t> returned_{0};
  std::atomic<uint32_t> returned_count_{0};
  uint32_t* below_ = nullptr;  // by index: 1 + the index below it in the stack
  char path_[1400] = {};
};

}  // namespace lockstep::capture
