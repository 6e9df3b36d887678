// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "lockstep-files-";

int open_locked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && status.st_uid == ::geteuid() && ::flock(fd, LOCK_EX | LOCK_NB) == 0)
    return fd;
  ::close(fd);
  return -1;
}

// Only this user's, and only those whose owner is gone.
void remove_left_behind(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path();
    if (entry->path().filename().string().rfind(kPrefix, 0) != 0) continue;
    const int fd = open_locked(path);
    if (fd < 0) continue;
    std::error_code ignored;
    fs::remove_all(path, ignored);
    ::close(fd);
  }
}

}  // namespace

std::string temporary_folder() {
  const char* const folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != 0 ? folder : "/var/tmp";
}

Result<TemporaryDirectory> TemporaryDirectory::make() {
  const std::string folder = temporary_folder();
  remove_left_behind(folder);
  TemporaryDirectory made;
  // Between its making and its locking another program may take it for one that was left behind.
  for (int attempt = 0; attempt < 8; ++attempt) {
    std::string path = folder + '/' + kPrefix + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) break;
    made.lock_ = open_locked(path);
    if (made.lock_ >= 0 && ::access(path.c_str(), W_OK) == 0) {
      made.path_ = std::move(path);
      return made;
    }
    if (made.lock_ >= 0) ::close(std::exchange(made.lock_, -1));
  }
  return Error{
      ErrorCode::kIo,
      std::string("no directory can be made in it: ") + std::strerror(errno) + "; name another one in TMPDIR",
      folder};
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : lock_(std::exchange(other.lock_, -1)), path_(std::exchange(other.path_, {})) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  std::swap(lock_, other.lock_);
  std::swap(path_, other.path_);
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  if (lock_ < 0) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(lock_);
}

}  // namespace lockstep
