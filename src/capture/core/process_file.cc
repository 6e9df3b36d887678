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
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace lockstep::capture {
namespace {

constexpr uint32_t kFirstChunks = 128,
                   kFirstPopulated = 16;  // enough for a burst before the keeper first runs
constexpr uint32_t kMinChunks = 16, kMinRingChunks = 32;
constexpr uint64_t kMinMappingBytes = uint64_t{16} << 20;

const char* source_word(format::Source source) {
  switch (source) {
    case format::Source::kNccl:
      return "nccl";
    case format::Source::kApi:
      return "api";
    case format::Source::kCuda:
      return "cuda";
    case format::Source::kHsa:
      return "hsa";
    default:
      return "x";
  }
}

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
             static_cast<unsigned long long>(identity.start_ticks), source_word(source), suffix);
    fd_ = open(path_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ >= 0 || errno != EEXIST) break;
  }
  if (fd_ < 0) {
    snprintf(why, why_size, "cannot create %s: %s", path_, strerror(errno));
    return false;
  }
  struct stat file {};
  fstat(fd_, &file);
  device_ = file.st_dev;
  inode_ = file.st_ino;
  return true;
}

// Hosts close descriptors they do not know, and the number may then stand for a file of theirs. False if ours is gone.
bool ProcessFile::own_descriptor() {
  auto is_ours = [this](int fd) {
    struct stat file {};
    return fstat(fd, &file) == 0 && file.st_dev == device_ && file.st_ino == inode_;
  };
  if (is_ours(fd_)) return true;
  int again = open(path_, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (again < 0) return false;
  if (!is_ours(again)) {
    ::close(again);
    errno = EBADF;
    return false;
  }
  fd_ = again;
  return true;
}

bool ProcessFile::create(const Config& config, const Identity& identity, format::Source source, char* why,
                         size_t why_size) {
  if (!open_unique(config, identity, source, why, why_size)) return false;
  ring_ = config.retention == format::Retention::kRing;
  uint64_t bytes = config.cap_bytes;
  if (bytes < kMinChunks * uint64_t{format::kChunkBytes}) bytes = kMinChunks * uint64_t{format::kChunkBytes};
  if (bytes > uint64_t{0x7fffffff} * format::kChunkBytes) bytes = uint64_t{0x7fffffff} * format::kChunkBytes;
  void* base = MAP_FAILED;
  // Address space may be limited (ulimit -v); a smaller file then has to do, and its cap is counted when it is met.
  for (;;) {
    max_chunks_ = static_cast<uint32_t>(bytes / format::kChunkBytes);
    if (ring_ && max_chunks_ < kMinRingChunks) max_chunks_ = kMinRingChunks;
    uint64_t mapping = format::kHeaderBytes + uint64_t{max_chunks_} * format::kChunkBytes;
    base = mmap(nullptr, mapping, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (base != MAP_FAILED || bytes <= kMinMappingBytes) break;
    bytes /= 2;
  }
  if (base == MAP_FAILED || !allocate(0, format::kHeaderBytes)) {
    snprintf(why, why_size, "cannot %s %s: %s", base == MAP_FAILED ? "map" : "allocate", path_,
             strerror(errno));
    if (base != MAP_FAILED) munmap(base, format::kHeaderBytes + uint64_t{max_chunks_} * format::kChunkBytes);
    unlink(path_);
    ::close(fd_);
    return false;
  }
  base_ = static_cast<char*>(base);
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
  h->cap_bytes = uint64_t{max_chunks_} * format::kChunkBytes;
  allocate_ahead(ring_ ? max_chunks_ : kFirstChunks);
  populate_ahead(kFirstPopulated);
  if (state() == format::FileState::kDiskFull && ready_.load(std::memory_order_relaxed) == 0) {
    snprintf(why, why_size, "no space left for %s", path_);
    unlink(path_);
    return false;
  }
  return true;
}

bool ProcessFile::allocate(uint64_t offset, uint64_t bytes) {
  if (!own_descriptor()) return false;
  WithoutSizeSignal without;
  if (fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return true;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
  static const char zeros[4096] = {};
  for (uint64_t done = 0; done < bytes; done += sizeof zeros) {
    if (pwrite(fd_, zeros, sizeof zeros, static_cast<off_t>(offset + done)) != sizeof zeros) return false;
  }
  return true;
}

void ProcessFile::populate_ahead(uint32_t ahead) {
  uint32_t claimed = claimed_.load(std::memory_order_relaxed);
  uint32_t ready = ready_.load(std::memory_order_relaxed);
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
  uint32_t ready = ready_.load(std::memory_order_relaxed);
  uint32_t claimed = claimed_.load(std::memory_order_relaxed);
  while (ready - claimed < ahead) {
    uint32_t step = ahead - (ready - claimed);
    if (step > max_chunks_ - ready) step = max_chunks_ - ready;
    if (step == 0) {
      if (!ring_ && claimed == max_chunks_) set_state(format::FileState::kSizeCap);
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

void ProcessFile::close() {
  uint32_t claimed = claimed_.exchange(kNoChunk, std::memory_order_relaxed);
  ready_.store(0, std::memory_order_relaxed);
  __atomic_store_n(&header()->chunks_claimed, claimed, __ATOMIC_RELAXED);
  __atomic_store_n(&header()->chunks_ready, claimed, __ATOMIC_RELAXED);
  if (own_descriptor() &&
      ftruncate(fd_, static_cast<off_t>(format::kHeaderBytes + uint64_t{claimed} * format::kChunkBytes)) ==
          0 &&
      state() == format::FileState::kOpen) {
    set_state(format::FileState::kClosed);
  }
}

}  // namespace lockstep::capture
