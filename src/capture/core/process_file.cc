// SPDX-License-Identifier: Apache-2.0
#include "capture/core/process_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/core/small_file.h"
#include "format/source_name.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace lockstep::capture {
namespace {

constexpr uint32_t kFirstChunks = 128,
                   kFirstPopulated = 16;  // enough for a burst before the keeper first runs
constexpr uint32_t kMinChunks = 16, kMinRingChunks = 32;
constexpr uint64_t kMinMappingBytes = uint64_t{16} << 20;
// Ring: what every thread can have when the ring itself is used up. Definitions, statistics and two chunks of records.
constexpr uint32_t kChunksBeside = 4 * format::kMaxLogs;

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

// To grow beyond the process's file size limit raises SIGXFSZ, which would end the host; the error is enough.
class WithoutSizeSignal {
 public:
  WithoutSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~WithoutSizeSignal() {
    if (sigismember(&before_, SIGXFSZ)) return;
    int error = errno;
    timespec now{};
    sigtimedwait(&signal_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSizeSignal(const WithoutSizeSignal&) = delete;
  WithoutSizeSignal& operator=(const WithoutSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
};

bool out_of_space(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

}  // namespace

bool ProcessFile::open_unique(const Config& config, const Identity& identity, format::Source source,
                              char* why, size_t why_size) {
  char directory[sizeof config.directory];
  memcpy(directory, config.directory, sizeof directory);
  if (!make_directories(directory)) {
    snprintf(why, why_size, "cannot create the directory %s: %s", directory, strerror(errno));
    return false;
  }
  for (int attempt = 0; attempt < 16; ++attempt) {
    char suffix[8] = "";
    if (attempt > 0) snprintf(suffix, sizeof suffix, ".%d", attempt);
    snprintf(path_, sizeof path_, "%s/%s.%d.%llu.%s%s.lks", directory, identity.host, identity.pid,
             static_cast<unsigned long long>(identity.start_ticks), format::source_name(source, "x"), suffix);
    fd_ = open(path_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ >= 0 || errno != EEXIST) break;
  }
  if (fd_ < 0) {
    snprintf(why, why_size, "cannot create %s: %s", path_, strerror(errno));
    return false;
  }
  struct stat file {};
  file_status(fd_, &file);
  device_ = file.st_dev;
  inode_ = file.st_ino;
  return true;
}

// Hosts close descriptors they do not know, and the number may then stand for a file of theirs. -1 if ours is gone.
int ProcessFile::own_descriptor() {
  auto is_ours = [this](int fd) {
    struct stat file {};
    return file_status(fd, &file) == 0 && file.st_dev == device_ && file.st_ino == inode_;
  };
  int known = fd_.load(std::memory_order_relaxed);
  if (is_ours(known)) return known;
  int again = open(path_, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (again < 0) return -1;
  if (!is_ours(again)) {
    ::close(again);
    errno = EBADF;
    return -1;
  }
  if (fd_.compare_exchange_strong(known, again, std::memory_order_relaxed)) return again;
  ::close(again);  // another thread was faster
  return known;
}

// Address space may be limited (ulimit -v); a smaller file then has to do, and its cap is counted when it is met.
bool ProcessFile::map(uint64_t bytes) {
  uint32_t beside = ring_ ? kChunksBeside : 0;
  const uint32_t least = ring_ ? kMinRingChunks : kMinChunks;
  uint64_t chunks = bytes / format::kChunkBytes;
  if (chunks > 0x7fffffff - kChunksBeside) chunks = 0x7fffffff - kChunksBeside;
  for (;;) {
    cap_chunks_ = chunks < least ? least : static_cast<uint32_t>(chunks);
    max_chunks_ = cap_chunks_ + beside;
    const uint64_t mapping = format::kHeaderBytes + uint64_t{max_chunks_} * format::kChunkBytes;
    void* base = mmap(nullptr, mapping, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (base != MAP_FAILED) {
      base_ = static_cast<char*>(base);
      return true;
    }
    if (mapping <= kMinMappingBytes) return false;
    chunks /= 2;
    beside /= 2;
  }
}

bool ProcessFile::create(const Config& config, const Identity& identity, format::Source source, char* why,
                         size_t why_size) {
  if (!open_unique(config, identity, source, why, why_size)) return false;
  ring_ = config.retention == format::Retention::kRing;
  // The header first: a child of a fork between the two counts what it loses there, and a page behind the file's end kills it.
  const bool allocated = allocate(0, format::kHeaderBytes);
  if (!allocated || !map(config.cap_bytes)) {
    snprintf(why, why_size, "cannot %s %s: %s", allocated ? "map" : "allocate", path_, strerror(errno));
    unlink(path_);
    ::close(fd_);
    return false;
  }
  if (ring_) {
    void* below = mmap(nullptr, uint64_t{max_chunks_} * sizeof *below_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // Without it nothing is given back, and first come stays first served.
    below_ = below == MAP_FAILED ? nullptr : static_cast<uint32_t*>(below);
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
  if (state() == format::FileState::kDiskFull && ready_.load(std::memory_order_relaxed) == 0) {
    snprintf(why, why_size, "no space left for %s", path_);
    unlink(path_);
    return false;
  }
  return true;
}

bool ProcessFile::allocate(uint64_t offset, uint64_t bytes) {
  const int fd = own_descriptor();
  if (fd < 0) return false;
  WithoutSizeSignal without;
  if (fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return true;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
  static const char zeros[4096] = {};
  for (uint64_t done = 0; done < bytes; done += sizeof zeros) {
    if (pwrite(fd, zeros, sizeof zeros, static_cast<off_t>(offset + done)) != sizeof zeros) return false;
  }
  return true;
}

void ProcessFile::stop_for_space() {
  uint32_t open = static_cast<uint32_t>(format::FileState::kOpen);
  __atomic_compare_exchange_n(&header()->state, &open, static_cast<uint32_t>(format::FileState::kDiskFull),
                              false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

uint32_t ProcessFile::make_chunk() {
  uint32_t next = claim_chunk();
  if (next != kNoChunk || state() != format::FileState::kOpen) return next;
  next = claimed_.load(std::memory_order_relaxed);
  do {
    if (next >= max_chunks_) return kNoChunk;
  } while (!claimed_.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
  if (!allocate(format::kHeaderBytes + uint64_t{next} * format::kChunkBytes, format::kChunkBytes)) {
    stop_for_space();
    uint32_t after = next + 1;
    claimed_.compare_exchange_strong(after, next, std::memory_order_relaxed);
    return kNoChunk;
  }
  madvise(chunk(next), format::kChunkBytes, MADV_POPULATE_WRITE);
  return next;
}

void ProcessFile::give_back(uint32_t index) {
  if (below_ == nullptr) return;
  auto* header = reinterpret_cast<format::ChunkHeader*>(chunk(index));
  __atomic_store_n(&header->magic, 0u, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memset(header, 0, sizeof *header);
  uint64_t head = returned_.load(std::memory_order_relaxed);
  uint64_t now;
  do {
    __atomic_store_n(&below_[index], static_cast<uint32_t>(head), __ATOMIC_RELAXED);
    now = ((head >> 32) + 1) << 32 | (index + 1);
  } while (!returned_.compare_exchange_weak(head, now, std::memory_order_release, std::memory_order_relaxed));
  returned_count_.fetch_add(1, std::memory_order_relaxed);
}

uint32_t ProcessFile::take_back() {
  uint64_t head = returned_.load(std::memory_order_acquire);
  uint64_t now;
  do {
    if (static_cast<uint32_t>(head) == 0) return kNoChunk;
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
  char* begin = chunk(populated_);
  uint64_t bytes = uint64_t{end - populated_} * format::kChunkBytes;
  // Older kernels cannot populate; the first store into each page does it then.
  if (madvise(begin, bytes, MADV_POPULATE_WRITE) != 0) return;
  populated_ = end;
}

void ProcessFile::allocate_ahead(uint32_t ahead) {
  const uint32_t claimed = claimed_.load(std::memory_order_relaxed);
  uint32_t ready = ready_.load(std::memory_order_relaxed);
  if (ready < claimed) ready = claimed;  // threads have made their own meanwhile
  while (ready - claimed < ahead) {
    uint32_t step = ahead - (ready - claimed);
    if (step > cap_chunks_ - ready) step = cap_chunks_ - ready;
    if (step == 0) {
      if (!ring_ && claimed == cap_chunks_) set_state(format::FileState::kSizeCap);
      return;
    }
    uint64_t offset = format::kHeaderBytes + uint64_t{ready} * format::kChunkBytes;
    while (!allocate(offset, uint64_t{step} * format::kChunkBytes)) {
      if (!out_of_space(errno) || step == 1) {
        set_state(format::FileState::kDiskFull);
        return;
      }
      step /= 2;
      ahead = ready - claimed + step;
    }
    ready += step;
    __atomic_store_n(&header()->chunks_ready, ready, __ATOMIC_RELAXED);
    ready_.store(ready, std::memory_order_release);
  }
}

uint32_t ProcessFile::claimed_in_file() {
  const int fd = own_descriptor();
  struct stat file {};
  if (fd < 0 || file_status(fd, &file) != 0 || static_cast<uint64_t>(file.st_size) < format::kHeaderBytes)
    return 0;
  const uint64_t there = (static_cast<uint64_t>(file.st_size) - format::kHeaderBytes) / format::kChunkBytes;
  const uint32_t used = claimed();
  return used < there ? used : static_cast<uint32_t>(there);
}

void ProcessFile::close() {
  uint32_t claimed = claimed_.exchange(kNoChunk, std::memory_order_relaxed);
  ready_.store(0, std::memory_order_relaxed);
  returned_.store(0, std::memory_order_relaxed);
  const int fd = own_descriptor();
  struct stat file {};
  if (fd >= 0 && file_status(fd, &file) == 0) {
    // Chunks for which there was no space may have been claimed behind the end: the file is cut, never made longer.
    const auto there = static_cast<uint32_t>((static_cast<uint64_t>(file.st_size) - format::kHeaderBytes) /
                                             format::kChunkBytes);
    if (claimed > there) claimed = there;
  }
  __atomic_store_n(&header()->chunks_claimed, claimed, __ATOMIC_RELAXED);
  __atomic_store_n(&header()->chunks_ready, claimed, __ATOMIC_RELAXED);
  if (fd >= 0 &&
      ftruncate(fd, static_cast<off_t>(format::kHeaderBytes + uint64_t{claimed} * format::kChunkBytes)) ==
          0 &&
      state() == format::FileState::kOpen) {
    set_state(format::FileState::kClosed);
  }
}

}  // namespace lockstep::capture
