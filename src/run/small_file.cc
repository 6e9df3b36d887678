// SPDX-License-Identifier: Apache-2.0
// Small files of a run directory, written whole or not at all. They may lie on a network file system and
// belong to somebody else, so opening one never waits, and making one never follows a link.
#include "run/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/partial_path.h"

namespace lockstep::run {
namespace {

bool write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t put = write(fd, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<size_t>(put);
  }
  return true;
}

}  // namespace

Error system_error(const std::string& what, const std::string& where, int error) {
  ErrorCode code =
      error == EACCES || error == EPERM || error == EROFS ? ErrorCode::kPermission : ErrorCode::kIo;
  return Error{code, what + ": " + std::strerror(error), where};
}

Result<void> write_whole(const std::string& path, const std::string& text) {
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  int fd = create_new_file(temporary, 0666);
  if (fd < 0) return system_error("cannot create", temporary, errno);
  bool whole = write_all(fd, text);
  int error = errno;
  // On some network file systems a full disk is told here.
  if (close(fd) != 0 && whole) {
    whole = false;
    error = errno;
  }
  if (whole && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  if (whole) error = errno;
  unlink(temporary.c_str());
  return system_error("cannot write", path, error);
}

Result<bool> create_exclusively(const std::string& path, const std::string& text) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST) return false;
  if (fd < 0) return system_error("cannot create", path, errno);
  bool whole = write_all(fd, text);
  int error = errno;
  close(fd);
  if (whole) return true;
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
