// SPDX-License-Identifier: Apache-2.0
// Small files of a run directory. They may lie on a network file system and belong to somebody else, so
// opening one never waits, and making one never follows a link.
#include "run/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/partial_path.h"

namespace lockstep::run {

Result<bool> create_exclusively(const std::string& path, const std::string& text) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST) return false;
  if (fd < 0) return system_error("cannot create", path, errno);
  bool whole = write_all(fd, text);
  int error = errno;
  close(fd);
  if (whole) return true;
  // A manifest or lock without its text would hold its name for ever.
  unlink(path.c_str());
  return system_error("cannot write", path, error);
}

std::optional<std::string> read_small(const std::string& path, size_t limit) {
  // A pipe of that name would hold up whoever opens it.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string text;
  char buffer[16384];
  while (text.size() < limit) {
    ssize_t got = read(fd, buffer, std::min(sizeof buffer, limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

}  // namespace lockstep::run
