// SPDX-License-Identifier: Apache-2.0
// A process is judged by /proc of this host, and only where boot and pid namespace are those of the file.
// Elsewhere its heartbeat is all there is, and it says less: that it beats now proves that the process lives,
// but that it does not may be a file system that shows old bytes or a clock that is off, so nothing follows
// from silence.
#include "run/liveness.h"
#include "base/unix_time.h"

#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <map>

namespace lockstep::run {
namespace {

using model::Liveness;

// Of a heartbeat a second: what a shared file system and the clocks of two hosts take away from it.
constexpr int64_t kCurrentNs = 10'000'000'000;

using BootAndPid = std::pair<std::string, int64_t>;

std::string digits(std::string_view boot_id) {
  std::string digits;
  for (char c : boot_id) {
    if (c != '-') digits += c;
  }
  return digits;
}

std::multimap<BootAndPid, ProcessFile> files_of(const std::vector<std::string>& paths) {
  std::multimap<BootAndPid, ProcessFile> files;
  for (const std::string& path : paths) {
    for (const ProcessFile& file : process_files_at(path)) {
      if (file.valid) files.emplace(BootAndPid(file.process.boot_id, file.process.pid), file);
    }
  }
  return files;
}

}  // namespace

std::string_view liveness_text(Liveness liveness) {
  switch (liveness) {
    case Liveness::kRunning:
      return "running";
    case Liveness::kStopped:
      return "stopped";
    case Liveness::kGone:
      return "gone";
    case Liveness::kUnknown:
      break;
  }
  return "unknown";
}

bool beats(int64_t heartbeat_ns, int64_t now_ns) { return std::abs(now_ns - heartbeat_ns) <= kCurrentNs; }

Liveness look_at(const ProcessIdentity& process) {
  std::optional<bool> alive = is_alive(process);
  if (!alive) return Liveness::kUnknown;
  if (*alive) {
    auto stat = read_stat(process.pid);
    return !stat ? Liveness::kGone : stat->stopped ? Liveness::kStopped : Liveness::kRunning;
  }
  // A /proc that hides the processes of other users makes them look gone. The kernel refuses a signal (EPERM)
  // to a process that is there, and only to such a one.
  bool hidden = !read_stat(process.pid) && kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == EPERM;
  return hidden ? Liveness::kUnknown : Liveness::kGone;
}

void set_liveness(const std::vector<std::string>& paths, model::Job& job) {
  const int64_t now_ns = unix_now_ns();
  std::multimap<BootAndPid, ProcessFile> files = files_of(paths);
  for (model::JobProcess& process : job.processes) {
    // A process number that was used twice in one boot: the header whose start is nearest.
    const ProcessFile* nearest = nullptr;
    auto away = [&](const ProcessFile& file) { return std::abs(file.start_ns - process.row.start_ns); };
    auto [begin, end] = files.equal_range({digits(job.text(process.row.boot_id)), process.row.pid});
    for (auto at = begin; at != end; ++at) {
      if (nearest == nullptr || away(at->second) < away(*nearest)) nearest = &at->second;
    }
    if (nearest == nullptr) continue;
    process.liveness = look_at(nearest->process);
    // A heartbeat is asked only where the kernel cannot be: it is on another host's clock and comes through a
    // file system.
    process.beats = process.liveness == Liveness::kUnknown && process.row.closed == 0 &&
                    beats(process.row.heartbeat_ns, now_ns);
  }
}

}  // namespace lockstep::run
