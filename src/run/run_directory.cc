// SPDX-License-Identifier: Apache-2.0
// Several launchers of one job start at the same moment on hosts that share nothing but a file system,
// perhaps NFS. So every decision is one that a file system takes for exactly one of them: the manifest is
// created exclusively, and so is the lock; between hosts nobody relies on flock() or on clocks that agree. A
// launcher joins only a directory that is still running and bears the key of its own start: a name that
// exists is not yet the same job.
#include "run/run_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/partial_path.h"
#include "run/small_file.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kNames = 10000;                       // path, path.2, path.3, ...
constexpr auto kPartner = std::chrono::seconds(2);  // between another's mkdir and its manifest
constexpr auto kLateLaunchers =
    std::chrono::seconds(10);  // between the first and the last start of a job's launchers
constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr int64_t kSilentSeconds = 60;

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  return names;
}

int64_t modified_seconds(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mtim.tv_sec : 0;
}

// Or what a launcher that was killed left of one.
bool is_json(const std::string& name) {
  return name.ends_with(".json") || name.find(".json.partial-") != name.npos;
}
bool is_census(const std::string& name) { return name.starts_with("census.") && is_json(name); }
bool is_host_lock(const std::string& name) {
  return (name.starts_with("links.") || name.starts_with("follow.")) && name.ends_with(".lock");
}

// Removes a lock whose holder is known to be dead. Only launchers of its host know that, where flock() keeps
// them apart: who comes second must not remove the lock that the first one has made in its place.
bool remove_stale(const std::string& path) {
  const int lock = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (lock < 0) return false;
  bool removed = false;
  // A file system without flock() has this one by itself.
  if (flock(lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    const auto holder = read_registration(path);
    struct stat opened {
    }, named{};
    removed = holder && !is_alive_launcher(holder->process).value_or(true) && fstat(lock, &opened) == 0 &&
              stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
              opened.st_dev == named.st_dev && unlink(path.c_str()) == 0;
  }
  close(lock);
  return removed;
}

}  // namespace

std::string link_log_path(const std::string& run, const ProcessIdentity& launcher) {
  return run + "/links." + launcher.host + "." + std::to_string(launcher.pid) + ".log";
}

std::string link_lock_path(const std::string& run, const ProcessIdentity& launcher) {
  return run + "/links." + launcher.host + ".lock";
}

std::string link_watch_path(const std::string& run, const ProcessIdentity& launcher) {
  return run + "/links." + launcher.host + ".watch.lock";
}

std::string follow_lock_path(const std::string& run, const ProcessIdentity& launcher) {
  return run + "/follow." + launcher.host + ".lock";
}

bool is_link_log(const std::string& path) {
  const std::string name = fs::path(path).filename();
  return name.starts_with("links.") && name.ends_with(".log");
}

std::vector<std::string> link_logs(const std::string& run) {
  std::vector<std::string> logs;
  for (const std::string& name : names_in(run))
    if (std::error_code ignored; is_link_log(name) && fs::is_regular_file(run + "/" + name, ignored))
      logs.push_back(run + "/" + name);
  std::sort(logs.begin(), logs.end());
  return logs;
}

bool has_own_launcher(const std::string& run) {
  const std::string folder = run + "/launchers/";
  const std::vector<std::string> names = names_in(folder);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto launcher = name.ends_with(".json") ? read_registration(folder + name) : std::nullopt;
    return launcher && launcher->state == "running" && is_alive_launcher(launcher->process).value_or(false);
  });
}

Result<RunDirectory> RunDirectory::create_or_join(const std::string& path, const Manifest& manifest) {
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  for (int i = 1; i <= kNames; ++i) {
    std::string candidate = i == 1 ? path : path + "." + std::to_string(i);
    Error error;
    if (auto created = try_create(candidate, manifest, error)) return *std::move(created);
    // Neither made nor failed: somebody has the name. Join it, or try the next one.
    if (!error.text.empty()) return error;
    if (auto joined = try_join(candidate, manifest)) return *std::move(joined);
  }
  return Error{ErrorCode::kIo, "no free name for the run directory; remove old ones, or name one with --dir",
               path};
}

std::optional<RunDirectory> RunDirectory::try_create(const std::string& path, const Manifest& manifest,
                                                     Error& error) {
  const bool is_ours = mkdir(path.c_str(), 0777) == 0;
  const auto leave_nothing = [&] {
    if (is_ours) rmdir(path.c_str());
  };
  if (!is_ours) {
    if (errno != EEXIST) {
      error = system_error("cannot create the run directory", path, errno);
      error.text += "; name another one with --dir";
      return std::nullopt;
    }
    std::error_code failed;
    // An empty folder of that name is taken: users and schedulers make one beforehand.
    if (!fs::is_directory(path, failed) || !names_in(path).empty()) return std::nullopt;
  }
  auto created = create_exclusively(manifest_path(path), to_json(manifest));
  if (!created) {
    error = created.error();
    error.text += "; name another run directory with --dir";
    leave_nothing();
    return std::nullopt;
  }
  // Another launcher was first: it has the directory, and this one may join it.
  if (!*created) return std::nullopt;
  RunDirectory run;
  run.path_ = path;
  run.manifest_ = manifest;
  run.self_ = manifest.launcher;
  if (auto registered = run.register_launcher("running"); !registered) {
    error = registered.error();
    unlink(manifest_path(path).c_str());
    leave_nothing();
    return std::nullopt;
  }
  return run;
}

std::optional<RunDirectory> RunDirectory::try_join(const std::string& path, const Manifest& manifest) {
  if (manifest.launchers_key.empty()) return std::nullopt;
  auto found = read_manifest(path);
  std::error_code ignored;
  // The file may be there without its text for a moment.
  for (auto end = Clock::now() + kPartner;
       !found && fs::exists(manifest_path(path), ignored) && Clock::now() < end;) {
    std::this_thread::sleep_for(kPoll);
    found = read_manifest(path);
  }
  if (!found || found->state != "running" || found->launchers_key != manifest.launchers_key)
    return std::nullopt;
  RunDirectory run;
  run.path_ = path;
  run.manifest_ = *found;
  run.self_ = manifest.launcher;
  run.joined_ = true;
  if (!run.register_launcher("running")) return std::nullopt;
  // Whoever merges looks for launchers after taking the lock, so one of the two sees the other.
  if (fs::exists(path + "/merge.lock", ignored)) {
    unlink(run.registration_path().c_str());
    return std::nullopt;
  }
  return run;
}

std::string RunDirectory::registration_path() const {
  return path_ + "/launchers/" + self_.host + "." + std::to_string(self_.pid) + "." +
         std::to_string(self_.start_ticks) + ".json";
}

Result<void> RunDirectory::register_launcher(const std::string& state) const {
  std::string folder = path_ + "/launchers";
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return system_error("cannot create", folder, errno);
  return write_whole(registration_path(), to_json(self_, state));
}

void RunDirectory::touch() const { utimensat(AT_FDCWD, registration_path().c_str(), nullptr, 0); }

RunDirectory::Others RunDirectory::others() const {
  Others others;
  std::string folder = path_ + "/launchers";
  touch();  // the file server's own idea of now, to compare the others' files with
  int64_t now = modified_seconds(registration_path());
  for (const std::string& name : names_in(folder)) {
    std::string path = folder + "/" + name;
    if (path == registration_path()) continue;
    auto registration = name.ends_with(".json") ? read_registration(path) : std::nullopt;
    if (!registration) continue;
    ++others.registered;
    if (registration->state != "running") continue;
    auto alive = is_alive_launcher(registration->process);
    // Of this host the kernel knows; of others their file's age shows, by the server's clock alone.
    if (alive.value_or(now - modified_seconds(path) < kSilentSeconds)) ++others.running;
  }
  return others;
}

bool RunDirectory::lock() const {
  std::string path = path_ + "/merge.lock";
  std::string text = to_json(self_, "merging");
  auto created = create_exclusively(path, text);
  if (created && !*created && remove_stale(path)) created = create_exclusively(path, text);
  return created && *created;
}

RunDirectory::Leaving RunDirectory::leave() {
  // A state that cannot be written leaves this launcher to be taken for dead, which is as good.
  (void)register_launcher("left");
  auto expected = static_cast<size_t>(manifest_.launchers_key.empty() ? 1 : manifest_.launchers);
  for (auto end = Clock::now() + kLateLaunchers;;) {
    Others seen = others();
    if (seen.running > 0) return Leaving::kOthersRunning;
    if (seen.registered >= expected || Clock::now() >= end) break;
    std::this_thread::sleep_for(kPoll);
  }
  if (!lock()) return Leaving::kOthersRunning;
  // Again, under the lock: one may have joined since the look before it.
  if (others().running == 0) return Leaving::kLast;
  unlock();
  return Leaving::kOthersRunning;
}

void RunDirectory::unlock() const { unlink((path_ + "/merge.lock").c_str()); }

Result<void> RunDirectory::mark_complete() {
  manifest_.state = "complete";
  LOCKSTEP_TRY(write_whole(manifest_path(path_), to_json(manifest_)));
  unlock();
  return {};
}

void RunDirectory::remove(const std::vector<std::string>& files) const {
  for (const std::string& file : files) unlink(file.c_str());
  for (const std::string& name : names_in(path_ + "/launchers")) {
    if (is_json(name)) unlink((path_ + "/launchers/" + name).c_str());
  }
  rmdir((path_ + "/launchers").c_str());
  for (const std::string& name : names_in(path_)) {
    if (is_census(name) || is_host_lock(name)) unlink((path_ + "/" + name).c_str());
  }
  unlock();
  unlink(manifest_path(path_).c_str());
  // Only an empty folder goes: what others put there keeps it.
  rmdir(path_.c_str());
}

}  // namespace lockstep::run
