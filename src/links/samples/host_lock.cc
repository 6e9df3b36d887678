// SPDX-License-Identifier: Apache-2.0
#include "links/samples/host_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep::links {

HostLock::HostLock(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {}

HostLock::~HostLock() {
  if (fd_ >= 0) close(fd_);
}

HostLock::Taken HostLock::take() const {
  if (fd_ < 0) return Taken::kImpossible;
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return Taken::kYes;
  return errno == EWOULDBLOCK || errno == EINTR ? Taken::kByAnother : Taken::kImpossible;
}

bool HostLock::is_held(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  // Shared: that takes no right to write, which the file of another user may not give.
  const bool is_free = flock(fd, LOCK_SH | LOCK_NB) == 0;
  const bool is_held = !is_free && errno == EWOULDBLOCK;
  close(fd);
  return is_held;
}

}  // namespace lockstep::links
