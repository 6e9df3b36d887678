// SPDX-License-Identifier: Apache-2.0
// Makes the file and the memory in front of it, and hands out places for chunks. A place is claimed by
// compare-and-swap from those that are prepared; preparing (space, page tables) is the keeper's, since each
// first touch of a page would cost the event path microseconds. Places beside the prepared ones are kept, so
// that each thread can have its definitions and one chunk even when storage does not answer.
#include "capture/core/file/process_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/core/file/size_signal.h"
#include "format/source_name.h"
#include "segment/header_writer.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace lockstep::capture {
namespace {

constexpr uint32_t kFirstChunks = 128,
                   kFirstPopulated = 16;  // enough for a burst before the keeper first runs
constexpr uint32_t kStreamPlaces = 1024;  // 32 MiB: half a million records while storage does not answer
// What every thread can have when the rest is used up: definitions and a chunk of records; in a ring also
// statistics and another of records.
constexpr uint32_t kPlacesBeside = 2 * format::kMaxLogs;
constexpr uint64_t kPageBytes = 4096;
constexpr uint32_t kMinChunks = 16, kMinRingChunks = 32,
                   kMostRingChunks = format::kMostPlaces - 2 * kPlacesBeside;

bool make_directories(char* path) {
  for (char* c = path + 1; *c != 0; ++c) {
    if (*c != '/') continue;
    *c = 0;
    int made = mkdir(path, 0777);
    *c = '/';
    if (made != 0 && errno != EEXIST && errno != EISDIR && errno != EROFS) return false;
  }
  return mkdir(path, 0777) == 0 || errno == EEXIST;
}

// Older kernels cannot populate: false, and the first store into each page does it. A virtual machine may
// have page tables of its own beside the host's (shadow paging), which the first access through an address
// fills: 10 us, not on the event path. Other threads may write there already.
__attribute__((no_sanitize("thread"))) bool populate(const char* begin, uint64_t bytes) {
  if (madvise(const_cast<char*>(begin), bytes, MADV_POPULATE_WRITE) != 0) return false;
  for (uint64_t at = 0; at < bytes; at += kPageBytes) (void)*static_cast<const volatile char*>(begin + at);
  return true;
}

}  // namespace

// Hosts change their directory, and the file may have to be opened again.
static bool make_absolute(const char* path, char* out, size_t size) {
  size_t used = 0;
  if (*path != '/') {
    if (getcwd(out, size - 1) == nullptr) return false;
    used = strlen(out);
    out[used++] = '/';
  }
  const size_t length = strlen(path);
  if (length >= size - used) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(out + used, path, length + 1);
  return true;
}

bool ProcessFile::open_unique(const Config& config, const Identity& identity, format::Source source,
                              char* why, size_t why_size) {
  char path[1400], *const end = path + sizeof path;
  if (!make_absolute(config.directory, path, sizeof path - 300) || !make_directories(path)) {
    snprintf(why, why_size, "cannot create the directory %s: %s", config.directory, strerror(errno));
    return false;
  }
  char* const name = path + strlen(path);
  int fd = -1;
  for (int attempt = 0; attempt < 16; ++attempt) {
    char suffix[8] = "";
    if (attempt > 0) snprintf(suffix, sizeof suffix, ".%d", attempt);
    snprintf(name, static_cast<size_t>(end - name), "/%s.%d.%llu.%s%s.lks", identity.host, identity.pid,
             static_cast<unsigned long long>(identity.start_ticks), format::source_name(source, "x"), suffix);
    // Never a file that is there: a name that can be guessed may be a link, and an older file somebody's
    // record.
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0 || errno != EEXIST) break;
  }
  if (fd < 0) {
    snprintf(why, why_size, "cannot create %s: %s", path, strerror(errno));
    return false;
  }
  file_.take(fd, path);
  return true;
}

bool ProcessFile::make_segment(const Config& config, const Identity& identity, format::Source source) {
  uint64_t cap = config.cap_bytes / format::kChunkBytes;
  const uint32_t least = ring_ ? kMinRingChunks : kMinChunks, most = ring_ ? kMostRingChunks : 0x7fffffff;
  cap_chunks_ = cap < least ? least : cap > most ? most : static_cast<uint32_t>(cap);
  const uint32_t fixed = ring_ ? cap_chunks_ : kStreamPlaces,
                 wanted = fixed + kPlacesBeside * (ring_ ? 2 : 1);
  if (!segment_.create(identity, source, wanted, fixed)) return false;
  base_ = segment_.file_begin();
  max_chunks_ = segment_.places();
  fixed_chunks_ = static_cast<uint32_t>(uint64_t{fixed} * max_chunks_ / wanted);
  if (ring_) cap_chunks_ = fixed_chunks_;
  if (fixed_chunks_ > cap_chunks_) fixed_chunks_ = cap_chunks_;
  return true;
}

bool ProcessFile::create(const Config& config, const Identity& identity, format::Source source, char* why,
                         size_t why_size) {
  if (!open_unique(config, identity, source, why, why_size)) return false;
  ring_ = config.retention == format::Retention::kRing;
  const auto fail = [this] {
    unlink(path());
    segment_.remove();
    file_.close();
    base_ = nullptr;
    return false;
  };
  const bool allocated = allocate_header();
  bool mapped = allocated && make_segment(config, identity, source);
  if (mapped) {
    void* below = mmap(nullptr, uint64_t{max_chunks_} * sizeof *below_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    below_ = below == MAP_FAILED ? nullptr : static_cast<uint32_t*>(below);
    mapped = below_ != nullptr;
  }
  if (!mapped) {
    snprintf(why, why_size, "cannot %s %s: %s", allocated ? "map" : "allocate", path(), strerror(errno));
    return fail();
  }
  format::FileHeader* h = header();
  memcpy(h->magic, format::kMagic, sizeof h->magic);
  h->major = format::kMajor;
  h->minor = format::kMinor;
  h->header_bytes = format::kHeaderBytes;
  h->chunk_bytes = format::kChunkBytes;
  h->unit_bytes = format::kUnitBytes;
  h->source = source;
  h->mode = config.mode;
  h->retention = config.retention;
  h->cap_bytes = uint64_t{cap_chunks_} * format::kChunkBytes;
  allocate_ahead(ring_ ? cap_chunks_ : kFirstChunks);
  populate_ahead(kFirstPopulated);
  if (ready_.load(std::memory_order_relaxed) == 0) {
    snprintf(why, why_size, "no space left for %s", path());
    return fail();
  }
  return true;
}

// Written, not only reserved: zeros are the state kBuilding, and a full disk shows at once.
bool ProcessFile::allocate_header() {
  static const char zeros[format::kHeaderBytes] = {};
  WithoutSizeSignal without;
  return segment::write_at(file_.get(), zeros, sizeof zeros, 0);
}

uint32_t ProcessFile::make_chunk() {
  uint32_t next = claim_chunk();
  if (next != kNoChunk || at_cap()) return next;
  // Nothing is prepared, so this thread makes a place itself, by system calls: not on the event path.
  next = claimed_.load(std::memory_order_relaxed);
  do {
    if (next >= max_chunks_) return kNoChunk;
  } while (!claimed_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
  // The claim is taken back if nobody has claimed behind it; else a place stays unused.
  if (!segment_.allocate(next, 1)) {
    uint32_t after = next + 1;
    claimed_.compare_exchange_strong(after, next, std::memory_order_relaxed);
    return kNoChunk;
  }
  populate(chunk(next), format::kChunkBytes);
  return give_number(next);
}

uint32_t ProcessFile::give_number(uint32_t place) {
  uint32_t* const entry = &segment_.table()[place];
  if (ring_) {
    __atomic_store_n(entry, place + 1, __ATOMIC_RELEASE);
    return place;
  }
  // Marked before a number is drawn, so that a writer that sees the number missing knows that it is on its
  // way.
  __atomic_store_n(entry, format::kPlaceClaimed, __ATOMIC_RELAXED);
  uint32_t number = numbers_.load(std::memory_order_relaxed);
  do {
    if (number >= cap_chunks_) {
      __atomic_store_n(entry, 0u, __ATOMIC_RELAXED);
      push(place);
      return kNoChunk;
    }
  } while (!numbers_.compare_exchange_weak(number, number + 1, std::memory_order_release,
                                           std::memory_order_relaxed));
  __atomic_store_n(entry, number + 1, __ATOMIC_RELEASE);
  return place;
}

void ProcessFile::give_back(uint32_t place) {
  // In this order readers learn that the place is not the chunk's any more before any byte of it changes.
  __atomic_store_n(&segment_.table()[place], 0u, __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  auto* header = reinterpret_cast<format::ChunkHeader*>(chunk(place));
  __atomic_store_n(&header->magic, 0u, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memset(header, 0, sizeof *header);
  push(place);
}

void ProcessFile::push(uint32_t place) {
  uint64_t head = returned_.load(std::memory_order_relaxed);
  uint64_t now;
  do {
    __atomic_store_n(&below_[place], static_cast<uint32_t>(head), __ATOMIC_RELAXED);
    // The count in the upper half: a head that looks the same may be another stack (ABA).
    now = ((head >> 32) + 1) << 32 | (place + 1);
  } while (!returned_.compare_exchange_weak(head, now, std::memory_order_release, std::memory_order_relaxed));
  returned_count_.fetch_add(1, std::memory_order_relaxed);
}

uint32_t ProcessFile::take_back() {
  uint64_t head = returned_.load(std::memory_order_acquire);
  uint64_t now;
  do {
    if (static_cast<uint32_t>(head) == 0) return kNoChunk;
    // Another thread may take this place meanwhile and leave a stale `below`: the count then makes the
    // exchange fail.
    uint32_t below = __atomic_load_n(&below_[static_cast<uint32_t>(head) - 1], __ATOMIC_RELAXED);
    now = ((head >> 32) + 1) << 32 | below;
  } while (!returned_.compare_exchange_weak(head, now, std::memory_order_acquire, std::memory_order_acquire));
  returned_count_.fetch_sub(1, std::memory_order_relaxed);
  return static_cast<uint32_t>(head) - 1;
}

void ProcessFile::populate_ahead(uint32_t ahead) {
  uint32_t claimed = claimed_.load(std::memory_order_relaxed);
  uint32_t ready = ready_.load(std::memory_order_relaxed);
  if (ready <= claimed) return;
  if (populated_ < claimed) populated_ = claimed;
  uint32_t end = ready - claimed < ahead ? ready : claimed + ahead;
  if (populated_ >= end) return;
  if (populate(chunk(populated_), uint64_t{end - populated_} * format::kChunkBytes)) populated_ = end;
}

void ProcessFile::allocate_ahead(uint32_t ahead) {
  if (at_cap()) return set_state(format::FileState::kSizeCap);
  const uint32_t claimed = claimed_.load(std::memory_order_relaxed);
  const uint32_t returned = returned_count_.load(std::memory_order_relaxed);
  uint32_t ready = ready_.load(std::memory_order_relaxed);
  if (ready < claimed) ready = claimed;  // threads have made their own meanwhile
  while (ready - claimed + returned < ahead && ready < fixed_chunks_) {
    uint32_t step = ahead - (ready - claimed + returned);
    if (step > fixed_chunks_ - ready) step = fixed_chunks_ - ready;
    // Where memory is short, half of it may still be there.
    while (!segment_.allocate(ready, step)) {
      if (step == 1) return;
      step /= 2;
      ahead = ready - claimed + returned + step;
    }
    ready += step;
    ready_.store(ready, std::memory_order_release);
  }
}

}  // namespace lockstep::capture
