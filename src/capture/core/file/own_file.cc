// SPDX-License-Identifier: Apache-2.0
// Hosts close descriptors that are not theirs (daemons close all of them), and a number that was closed is
// soon somebody else's file. So the descriptor is compared by device and inode before each use, and the file
// is opened again by name if it is not ours any more; the name is believed only if it leads to the same
// inode.
#include "capture/core/file/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "segment/small_file.h"

namespace lockstep::capture {

void OwnFile::take(int fd, const char* path) {
  struct stat file {};
  segment::file_status(fd, &file);
  device_ = file.st_dev;
  inode_ = file.st_ino;
  strncpy(path_, path, sizeof path_ - 1);
  fd_.store(fd, std::memory_order_relaxed);
}

// One system call for each use. What the host closes between this look and the use stays a risk.
bool OwnFile::is_ours(int fd) const {
  struct stat file {};
  return segment::file_status(fd, &file) == 0 && file.st_dev == device_ && file.st_ino == inode_;
}

int OwnFile::get() {
  int known = fd_.load(std::memory_order_relaxed);
  if (is_ours(known)) return known;
  if (path_[0] == 0) {
    errno = EBADF;
    return -1;
  }
  const int again = open(path_, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (again < 0) return -1;
  if (!is_ours(again)) {
    ::close(again);
    errno = EBADF;
    return -1;
  }
  // The old number stays open: by now it may be the host's.
  if (fd_.compare_exchange_strong(known, again, std::memory_order_relaxed)) return again;
  ::close(again);  // another thread was faster
  return known;
}

void OwnFile::close() {
  const int known = fd_.exchange(-1, std::memory_order_relaxed);
  if (known >= 0 && is_ours(known)) ::close(known);
}

}  // namespace lockstep::capture
