// SPDX-License-Identifier: Apache-2.0
// A killed program cannot clean up, so the next one does. It knows by a lock and not by age or pid: a long
// analysis may hold its directory for hours, and pids come again.
#include "base/temporary_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "lockstep-files-";

int open_locked(const std::string& path) {
  // Asked of what was opened, and no link is followed: others may write to this folder.
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && status.st_uid == ::geteuid() && ::flock(fd, LOCK_EX | LOCK_NB) == 0)
    return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

// Of this boot of this host: locks of other hosts are not seen here, and their directories are theirs.
constexpr const char* kMarker = "/.boot";

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

bool is_ours(const std::string& path) {
  std::string id;
  std::getline(std::ifstream(path + kMarker), id);
  return !id.empty() && id == boot_id();
}

// Only this user's, and only those whose owner is gone.
void remove_left_behind(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path();
    if (entry->path().filename().string().rfind(kPrefix, 0) != 0) continue;
    const int fd = is_ours(path) ? open_locked(path) : -1;
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
  std::string path = folder + '/' + kPrefix + "XXXXXX";
  const bool is_made = ::mkdtemp(path.data()) != nullptr;
  if (is_made) made.lock_ = open_locked(path);
  if (made.lock_ >= 0) {
    // Without the marker nobody takes it for one that was left behind.
    std::ofstream(path + kMarker) << boot_id() << '\n';
    made.path_ = std::move(path);
    return made;
  }
  const int error = errno;
  if (is_made) ::rmdir(path.c_str());
  return Error{
      ErrorCode::kIo,
      std::string("no directory can be made in it: ") + std::strerror(error) + "; name another one in TMPDIR",
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
  // Removed while it is locked, so that no other program takes it for left behind.
  if (lock_ < 0) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(lock_);
}

}  // namespace lockstep
