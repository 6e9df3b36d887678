// SPDX-License-Identifier: Apache-2.0
// Chooses where the records live. /dev/shm first, since it outlives a kill, but only if it is a tmpfs and
// leaves room: NCCL and data loaders need it, too, and a full one would fail the host. Else a memfd, sealed
// against being cut short, as a shorter one would be SIGBUS in the host. Else plain memory, which a kill
// takes along: capture that loses the end is better than none.
#include "capture/core/file/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/clock.h"
#include "capture/core/host/memory_limit.h"
#include "format/source_name.h"

namespace lockstep::capture {
namespace {

constexpr uint32_t kLeastPlaces = 64;
// The host needs /dev/shm, too: NCCL's transports, data loaders. Eight processes of two libraries take their
// segments from it.
constexpr uint64_t kRoomForOthers = uint64_t{512} << 20;

bool has_room(const char* folder, uint64_t bytes) {
  struct statfs there {};
  if (statfs(folder, &there) != 0) return false;
  // A tmpfs without a limit reports no blocks at all.
  return there.f_blocks == 0 ||
         there.f_bavail * static_cast<uint64_t>(there.f_bsize) >= kRoomForOthers + bytes;
}

// Of a limited address space, and of limited memory, the host gets most.
uint32_t fit(uint32_t places) {
  rlimit space{};
  uint64_t limit = own_memory_limit();
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && space.rlim_cur < limit)
    limit = space.rlim_cur;
  while (places > kLeastPlaces && format::segment_bytes(places) > limit / 16) places /= 2;
  return places;
}

}  // namespace

// The folder's own file system is asked first: what is on a disk there would be what the segment is to avoid.
bool Segment::make_named(const Identity& identity, format::Source source, uint64_t bytes) {
  struct statfs there {};
  constexpr long kTmpfs = 0x01021994;
  if (statfs(format::kSegmentFolder, &there) != 0 || there.f_type != kTmpfs ||
      !has_room(format::kSegmentFolder, bytes))
    return false;
  char path[128];
  for (int attempt = 0; attempt < 16; ++attempt) {
    // Pid and start survive exec, whose old segment may still wait for its adopter: the salt tells the two
    // apart.
    const uint64_t salt = (read_ticks() + static_cast<uint64_t>(attempt)) * 0x9e3779b97f4a7c15;
    snprintf(name_, sizeof name_, "%s%u-%d-%llu-%s-%08x", format::kSegmentPrefix, geteuid(), identity.pid,
             static_cast<unsigned long long>(identity.start_ticks), format::source_name(source, "x"),
             static_cast<unsigned>(salt >> 32));
    snprintf(path, sizeof path, "%s/%s", format::kSegmentFolder, name_);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) break;
    file_.take(fd, path);
    // Held by the mapping, whatever becomes of the descriptor: as long as it is, the process may write.
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) return true;
    remove();
    break;
  }
  name_[0] = 0;
  return false;
}

// Nobody can cut it short, whoever opens it.
bool Segment::make_nameless(uint64_t bytes) {
  // By number: glibc has memfd_create only since 2.27, and the libraries run with older ones.
  constexpr unsigned kCloexec = 1, kAllowSealing = 2;
  constexpr int kAddSeals = 1033, kSealSeal = 1, kSealShrink = 2, kSealGrow = 4;
  const int fd =
      static_cast<int>(syscall(SYS_memfd_create, format::kNamelessSegment, kCloexec | kAllowSealing));
  if (fd < 0) return false;
  file_.take(fd, "");
  return flock(fd, LOCK_SH | LOCK_NB) == 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
         fcntl(fd, kAddSeals, kSealSeal | kSealShrink | kSealGrow) == 0;
}

void Segment::drop() {
  if (base_ != nullptr) munmap(base_, format::segment_bytes(places_));
  base_ = nullptr;
  remove();
}

bool Segment::map(uint32_t places, int fd) {
  const uint64_t bytes = format::segment_bytes(places);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    fd >= 0 ? MAP_SHARED | MAP_NORESERVE : MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return false;
  base_ = static_cast<char*>(base);
  places_ = places;
  return true;
}

bool Segment::create(const Identity& identity, format::Source source, uint32_t places, uint32_t needed) {
  places = fit(places);
  rlimit size{};
  // The limit counts for tmpfs and memfd, too: beyond it ftruncate raises SIGXFSZ, which would end the host.
  const bool may_grow = getrlimit(RLIMIT_FSIZE, &size) == 0 &&
                        (size.rlim_cur == RLIM_INFINITY || size.rlim_cur >= format::segment_bytes(places));
  const uint64_t bytes = format::segment_bytes(places);
  if (may_grow && make_named(identity, source, uint64_t{needed} * format::kChunkBytes)) {
    if (ftruncate(file_.get(), static_cast<off_t>(bytes)) == 0 && map(places, file_.get()) &&
        allocate_header())
      return true;
    drop();
  }
  if (may_grow && make_nameless(bytes) && map(places, file_.get())) return true;
  drop();
  while (!map(places, -1)) {
    if (places <= kLeastPlaces) return false;
    places /= 2;
  }
  return true;
}

bool Segment::allocate_header() {
  const int fd = file_.get();
  const uint64_t bytes = format::segment_file_offset(places_) + format::kHeaderBytes;
  return fd >= 0 && fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0;
}

bool Segment::allocate(uint32_t first, uint32_t places) {
  // Only /dev/shm has a size that can run out; what has no name is bounded by memory alone.
  if (name_[0] == 0) return true;
  const int fd = file_.get();
  const uint64_t at = format::segment_file_offset(places_) + format::chunk_offset(first);
  return fd >= 0 && fallocate(fd, 0, static_cast<off_t>(at),
                              static_cast<off_t>(uint64_t{places} * format::kChunkBytes)) == 0;
}

void Segment::publish(const OwnFile& file, uint64_t key) {
  format::SegmentHeader* own = header();
  own->version = format::kSegmentVersion;
  own->places = places_;
  own->key = key;
  own->file_device = file.device();
  own->file_inode = file.inode();
  strncpy(own->path, file.path(), sizeof own->path - 1);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  uint64_t magic = 0;
  memcpy(&magic, format::kSegmentMagic, sizeof magic);
  __atomic_store_n(reinterpret_cast<uint64_t*>(own->magic), magic, __ATOMIC_RELEASE);
}

void Segment::remove() {
  // Not if neither descriptor nor name lead to our inode any more. The name is not compared where the
  // descriptor is good: in a sticky folder only our own user could have taken it.
  if (name_[0] != 0 && file_.get() >= 0) unlink(file_.path());
  file_.close();
  name_[0] = 0;
}

}  // namespace lockstep::capture
