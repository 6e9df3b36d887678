// SPDX-License-Identifier: Apache-2.0
// A segment is adopted once nobody can write to it any more. Either of two facts proves that: nobody holds
// the flock that its owner holds while it lives, or no process of our pid namespace has the owner's pid and
// start time. Neither would do alone: a child that inherited the descriptor keeps the lock, and a pid of
// another namespace cannot be looked up. The segment goes last, so an adopter that is killed loses nothing
// and the next one begins again.
//
// It writes to the file at the recorded path only if the file's key says that the two belong together (before
// its first header its device and inode do): by then the path alone could lead to somebody else's file.
#include "segment/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "format/segment_layout.h"
#include "segment/chunk_image.h"
#include "segment/dead_owner.h"
#include "segment/header_writer.h"
#include "segment/small_file.h"

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

namespace lockstep::segment {
namespace {

using format::FileHeader;
using format::FileState;
using format::SegmentHeader;

// How long a segment may stand without its header before it counts as the remains of a killed start, and how
// long its file may be gone before nobody will bring it back.
constexpr int64_t kUnfinishedSeconds = 60, kHomelessSeconds = 600;

// A descriptor of its own. Locks are given back by word: a child that the process forked meanwhile has the
// descriptor, too.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ < 0) return;
    struct flock none {};
    none.l_type = F_UNLCK;
    fcntl(fd_, F_OFD_SETLK, &none);
    flock(fd_, LOCK_UN);
    close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

template <class T>
bool read_at(int file, T* out, uint64_t offset, size_t size = sizeof(T)) {
  return pread(file, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

bool has_magic(const FileHeader& header) {
  return memcmp(header.magic, format::kMagic, sizeof header.magic) == 0;
}

class Adopter {
 public:
  Adopter(const char* name, const char* moved) : moved_(moved) {
    snprintf(path_, sizeof path_, "%s/%s", format::kSegmentFolder, name);
  }

  // Without a name.
  explicit Adopter(const char* file) : moved_(file) {}

  Adoption run() {
    const Descriptor segment(open(path_, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    return run(segment.get());
  }
  Adoption run(int segment) {
    segment_ = segment;
    if (segment_ < 0 || file_status(segment_, &status_) != 0 || !S_ISREG(status_.st_mode) ||
        status_.st_uid != geteuid())
      return Adoption::kRefused;
    struct flock alone {};
    alone.l_type = F_WRLCK;
    if (fcntl(segment_, F_OFD_SETLK, &alone) != 0) return Adoption::kLives;
    if (has_name() && (file_status(segment_, &status_) != 0 || status_.st_nlink == 0))
      return Adoption::kLives;
    if (!read_at(segment_, &header_, 0) ||
        memcmp(header_.magic, format::kSegmentMagic, sizeof header_.magic) != 0) {
      return is_unlocked() && age() > kUnfinishedSeconds ? remove() : Adoption::kLives;
    }
    if (header_.version != format::kSegmentVersion || header_.places > format::kMostPlaces ||
        !read_at(segment_, &file_header_, format::segment_file_offset(header_.places)))
      return Adoption::kRefused;
    if (!is_unlocked() && !has_gone(file_header_)) return Adoption::kLives;
    if (file_header_.state == static_cast<uint32_t>(FileState::kBuilding)) return remove();
    return finish();
  }

 private:
  bool has_name() const { return path_[0] != 0; }
  bool is_unlocked() const { return flock(segment_, LOCK_EX | LOCK_NB) == 0; }
  int64_t age() const {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - status_.st_mtim.tv_sec;
  }
  Adoption remove() const {
    return !has_name() || unlink(path_) == 0 || errno == ENOENT ? Adoption::kDone : Adoption::kFailed;
  }

  Adoption finish() {
    header_.path[sizeof header_.path - 1] = 0;
    Adoption adoption = finish(header_.path);
    if (adoption == Adoption::kRefused && moved_ != nullptr) adoption = finish(moved_);
    if (adoption != Adoption::kRefused) return adoption;
    return age() > kHomelessSeconds ? remove() : Adoption::kFailed;
  }

  // Refused: that is not its file.
  Adoption finish(const char* path) {
    const Descriptor file(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    FileHeader there{};
    bool is_whole = false;
    if (file.get() < 0 || !is_its_file(file.get(), &there, &is_whole)) return Adoption::kRefused;
    if (is_whole) return remove();
    if (!write_chunks(file.get(), there)) return Adoption::kFailed;
    if (header_.closed != 0 && file_header_.state == static_cast<uint32_t>(FileState::kOpen))
      file_header_.state = static_cast<uint32_t>(FileState::kClosed);
    file_header_.sealed_ticks = file_header_.heartbeat_ticks;
    return write_last_header(file.get(), file_header_) ? remove() : Adoption::kFailed;
  }

  // By its key; by its inode before its header was written for the first time.
  bool is_its_file(int file, FileHeader* there, bool* is_whole) const {
    struct stat status {};
    if (file_status(file, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    if (!read_at(file, there, 0) || !has_magic(*there))
      return status.st_dev == header_.file_device && status.st_ino == header_.file_inode;
    *is_whole = (has_name() ? there->segment[0] == 0 : header_.closed != 0) ||
                there->state == static_cast<uint32_t>(FileState::kClosed);
    return there->segment_key == header_.key;
  }

  bool is_ring() const { return file_header_.retention == format::Retention::kRing; }

  // What the file has of a ring's place that was given back since is no part of it any more.
  static bool clear(int file, uint32_t place) {
    static constexpr format::ChunkHeader kNone{};
    format::ChunkHeader there{};
    return !read_at(file, &there, format::chunk_offset(place)) || there.magic == 0 ||
           write_at(file, &kNone, sizeof kNone, format::chunk_offset(place));
  }

  bool write_chunks(int file, const FileHeader& there) {
    uint32_t end = is_ring()                                            ? 0
                   : file_header_.chunks_claimed > there.chunks_claimed ? file_header_.chunks_claimed
                                                                        : there.chunks_claimed;
    uint32_t first_unpublished = UINT32_MAX, unpublished = 0, written = 0;
    const uint64_t base = format::segment_file_offset(header_.places);
    for (uint32_t place = 0; place < header_.places; ++place) {
      uint32_t entry = 0;
      if (!read_at(segment_, &entry, format::kSegmentHeaderBytes + uint64_t{place} * sizeof entry))
        return false;
      if (entry == format::kPlaceClaimed || (entry == 0 && !is_ring())) continue;
      const uint32_t number = is_ring() ? place : entry - 1;
      if (entry != 0 && !read_at(segment_, chunk_, base + format::chunk_offset(place), sizeof chunk_))
        return false;
      if (entry == 0 || !make_image(chunk_, image_)) {
        ++unpublished;
        if (number < first_unpublished) first_unpublished = number;
        if (is_ring() && !clear(file, place)) return false;
        continue;
      }
      if (!write_at(file, image_, sizeof image_, format::chunk_offset(number))) return false;
      ++written;
      if (number >= end) end = number + 1;
    }
    file_header_.chunks_kept = is_ring() ? written : end - unpublished;
    file_header_.chunks_claimed = file_header_.chunks_ready =
        !is_ring() && first_unpublished < end ? first_unpublished : end;
    return true;
  }

  const char* const moved_;
  char path_[320] = {};  // empty: it has no name
  int segment_ = -1;
  struct stat status_ {};
  SegmentHeader header_{};
  FileHeader file_header_{};
  alignas(64) char chunk_[format::kChunkBytes];
  alignas(64) unsigned char image_[format::kChunkBytes];
};

}  // namespace

bool is_segment_name(const char* name) {
  return strncmp(name, format::kSegmentPrefix, sizeof format::kSegmentPrefix - 1) == 0 &&
         strchr(name, '/') == nullptr && strlen(name) < sizeof FileHeader::segment;
}

Adoption adopt(const char* name, const char* file) {
  return is_segment_name(name) ? Adopter(name, file).run() : Adoption::kRefused;
}

Adoption adopt_open(int segment, const char* file) { return Adopter(file).run(segment); }

// Without opendir(), which allocates: a host may look at what its heap holds.
Adoptions adopt_all(uint32_t most) {
  Adoptions sum;
  const Descriptor folder(open(format::kSegmentFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return sum;
  alignas(dirent64) char entries[4096];
  for (long got; most > 0 && (got = syscall(SYS_getdents64, folder.get(), entries, sizeof entries)) > 0;) {
    for (long at = 0; at < got && most > 0;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      if (!is_segment_name(entry->d_name)) continue;
      --most;
      const Adoption adoption = adopt(entry->d_name);
      sum.done += adoption == Adoption::kDone;
      sum.failed += adoption == Adoption::kFailed;
    }
  }
  return sum;
}

}  // namespace lockstep::segment
