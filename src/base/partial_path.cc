// SPDX-License-Identifier: Apache-2.0
// A file appears under its name when it is whole, by rename, and never before: a reader at the wrong moment
// and a kill at any moment find the old file or the new one. The name of what is in the making names its
// writer, so that the remains of the dead can be distinguished from the work of the living.
#include "base/partial_path.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Everything of the name but the pid.
std::string without_pid(const std::string& target) {
  char host[65] = {};
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = 0;
  struct stat status {};
  unsigned long long pids = stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
  return target + ".partial-" + host + "-" + std::to_string(pids) + "-";
}

// A pid that was used again keeps a stale file for another time; removing what somebody still writes would be
// worse.
bool is_gone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

template <class Choose>
void remove_partials(const std::string& target, Choose&& choose) {
  fs::path prefix(without_pid(target));
  std::string start = prefix.filename().string();
  fs::path folder = prefix.has_parent_path() ? prefix.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with(start)) continue;
    std::string_view rest = std::string_view(name).substr(start.size());
    pid_t pid = 0;
    auto [after, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    bool ours = failed == std::errc{} && pid > 0 && (after == rest.data() + rest.size() || *after == '-');
    std::error_code unremoved;
    if (ours && choose(pid)) fs::remove_all(it->path(), unremoved);
  }
}

}  // namespace

std::string partial_path(const std::string& target) { return without_pid(target) + std::to_string(getpid()); }

void remove_stale_partials(const std::string& target) { remove_partials(target, is_gone); }

void remove_own_partials(const std::string& target) {
  remove_partials(target, [](pid_t pid) { return pid == getpid(); });
}

int create_new_file(const std::string& path, unsigned mode) {
  unlink(path.c_str());
  return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(file, text.data(), text.size());
    if (put < 0 && errno != EINTR) return false;
    if (put > 0) text.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

Result<void> write_whole(const std::string& target, std::string_view text) {
  remove_stale_partials(target);
  const std::string partial = partial_path(target);
  const int file = create_new_file(partial, 0666);
  int error = file < 0 || !write_all(file, text) ? errno : 0;
  // On some network file systems a full disk is reported here.
  if (file >= 0 && close(file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(partial.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return {};
  remove_own_partials(target);
  return system_error("cannot be written", target, error);
}

Error system_error(const std::string& what, const std::string& where, int error) {
  const bool is_forbidden = error == EACCES || error == EPERM || error == EROFS;
  return Error{is_forbidden ? ErrorCode::kPermission : ErrorCode::kIo, what + ": " + std::strerror(error),
               where};
}

}  // namespace lockstep
