// SPDX-License-Identifier: Apache-2.0
// The file that a capture library writes: a shared mapping, handed out in chunks. What is stored here survives the
// death of the process, as the kernel holds the pages; nothing has to be flushed.
//
// Space is real before it is used: the keeper thread allocates chunks on disk ahead of need (`allocate_ahead`), so that
// no store can fail for want of space, and populates their pages (`populate_ahead`), so that stores meet no page fault;
// a writer that outruns the second pays the faults, one that outruns the first loses events. `claim_chunk` is lock-free
// and may be called on the event path by any thread. All else: one thread at a time (the session's lock).
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

  // The next allocated chunk, or kNoChunk. In ring retention the last eighth is kept for definitions and first chunks.
  uint32_t claim_chunk(bool may_use_reserve) {
    uint32_t limit = ready_.load(std::memory_order_acquire);
    if (ring_ && !may_use_reserve) limit -= limit / 8;
    uint32_t next = claimed_.load(std::memory_order_relaxed);
    do {
      if (next >= limit) return kNoChunk;
    } while (!claimed_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
    return next;
  }
  uint32_t claimed() const { return claimed_.load(std::memory_order_relaxed); }

  // Brings the number of allocated, unclaimed chunks up to `ahead`. Sets the header's state when space ends.
  void allocate_ahead(uint32_t ahead);
  // Populates the next `ahead` chunks that are not yet claimed.
  void populate_ahead(uint32_t ahead);
  // No more chunks; gives unused ones back to the file system and marks the file closed.
  void close();
  // Fork child: forget the file without touching it.
  void abandon() { ready_.store(0, std::memory_order_relaxed); }
  format::FileState state() const {
    return static_cast<format::FileState>(__atomic_load_n(&header()->state, __ATOMIC_RELAXED));
  }
  void set_state(format::FileState state) {
    __atomic_store_n(&header()->state, static_cast<uint32_t>(state), __ATOMIC_RELEASE);
  }

 private:
  bool open_unique(const Config& config, const Identity& identity, format::Source source, char* why,
                   size_t why_size);
  bool allocate(uint64_t offset, uint64_t bytes);
  bool own_descriptor();

  char* base_ = nullptr;
  int fd_ = -1;
  uint64_t device_ = 0, inode_ = 0;
  uint32_t max_chunks_ = 0;  // what the mapping and the cap allow
  bool ring_ = false;
  std::atomic<uint32_t> claimed_{0};
  std::atomic<uint32_t> ready_{0};  // allocated
  uint32_t populated_ = 0;
  char path_[1400] = {};
};

}  // namespace lockstep::capture
