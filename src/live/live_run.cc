// SPDX-License-Identifier: Apache-2.0
// Looks at all files of a run again and again, so a look costs what was written since the last one. Files of
// CUPTI come after the others in each look: their kernels are reported after what launched them.
#include "live/live_run.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <set>
#include <tuple>

#include "base/hex.h"
#include "base/text/units.h"
#include "model/names/who.h"
#include "run/liveness.h"

namespace lockstep::live {
namespace {

using readers::native::LiveOp;
using readers::native::LiveProcess;
using readers::native::LiveTail;

int64_t clock_ns(clockid_t clock) {
  struct timespec time {};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

SeenOp seen_op(const LiveProcess& process, const LiveOp& op, int64_t now_ns) {
  SeenOp seen{op.func, {}, op.number, std::max<int64_t>(now_ns - op.started_ns, 0)};
  if (op.comm < process.comms.size()) {
    const auto& comm = process.comms[op.comm];
    seen.comm = !comm.name.empty() ? comm.name : comm.comm_id != 0 ? hex(comm.comm_id) : "";
  }
  return seen;
}

// The id is the key, as it is equal on all members and names are not unique.
void add_comms(const LiveProcess& process, SeenProcess& seen) {
  for (const auto& comm : process.comms) {
    if (comm.comm_id == 0) continue;  // nothing says who else is in it
    seen.comms.push_back({.key = hex(comm.comm_id),
                          .name = comm.name.empty() ? hex(comm.comm_id) : comm.name,
                          .rank = comm.rank,
                          .ranks = comm.ranks,
                          .ended = comm.ended,
                          .from_start = process.from_start,
                          .functions = comm.functions});
  }
}

// The newer of two; or the older, for what is open.
void keep(std::optional<SeenOp>& kept, const std::optional<SeenOp>& other, bool older) {
  if (!other) return;
  if (!kept || (older ? other->age_ns > kept->age_ns : other->age_ns < kept->age_ns)) kept = other;
}

// Two libraries in one process.
void merge(SeenProcess& kept, SeenProcess&& other) {
  if (kept.rank < 0) kept.rank = other.rank;
  if (kept.world < 0) kept.world = other.world;
  if (kept.device < 0) kept.device = other.device;
  if (kept.pci.empty()) kept.pci = other.pci;
  if (kept.job_id.empty()) kept.job_id = other.job_id;
  // The process has ended only when each of its libraries has closed its file.
  kept.closed = kept.closed && other.closed;
  if (kept.heartbeat_age_ns < 0 ||
      (other.heartbeat_age_ns >= 0 && other.heartbeat_age_ns < kept.heartbeat_age_ns))
    kept.heartbeat_age_ns = other.heartbeat_age_ns;
  for (SeenComm& comm : other.comms) kept.comms.push_back(std::move(comm));
  keep(kept.last, other.last, false);
  keep(kept.oldest_open, other.oldest_open, true);
  kept.open += other.open;
  kept.ops_per_s += other.ops_per_s;
  kept.bytes_per_s += other.bytes_per_s;
  kept.dropped += other.dropped;
  for (SeenFile& file : other.files) kept.files.push_back(std::move(file));
}

}  // namespace

Result<void> LiveRun::refresh() {
  namespace fs = std::filesystem;
  std::set<std::string> named;
  for (const std::string& path : paths_) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      named.insert(path);
      continue;
    }
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".lks") named.insert(it->path().string());
    }
  }
  if (named.empty())
    return Error{ErrorCode::kNotFound, "no process files (*.lks) yet", paths_.empty() ? "" : paths_.front()};
  std::optional<Error> first_error;
  unreadable_ = 0;
  auto refresh_those = [&](bool of_cuda) {
    for (const std::string& path : named) {
      if (path.ends_with(".cuda.lks") != of_cuda) continue;
      if (auto refreshed = refresh(path); !refreshed) {
        ++unreadable_;
        if (!first_error) first_error = refreshed.error();
      }
    }
  };
  has_kernels_ = std::any_of(named.begin(), named.end(),
                             [](const std::string& path) { return path.ends_with(".cuda.lks"); });
  // Kernels are reported after what launched them.
  refresh_those(false);
  refresh_those(true);
  std::erase_if(files_, [&](const auto& file) { return !file.second.tail || !named.contains(file.first); });
  // The tails of a process own what they share; the map only finds it for the next file.
  std::erase_if(joins_, [](const auto& join) { return join.second.expired(); });
  if (files_.empty()) return *first_error;
  return {};
}

Result<void> LiveRun::refresh(const std::string& path) {
  File& file = files_[path];
  if (!file.tail) {
    file.file = run::process_file(path);
    std::shared_ptr<readers::native::LaunchJoin> join;
    if (depth_ == Depth::kAll) {
      auto& known = joins_[identity(file.file.process)];
      join = known.lock();
      if (!join) known = join = std::make_shared<readers::native::LaunchJoin>();
      if (has_kernels_) join->expect_kernels();
    }
    LOCKSTEP_ASSIGN(file.tail, LiveTail::open(path, depth_, std::move(join)));
    return {};
  }
  // Kept before the tail goes on: rates are differences of two looks.
  file.ops = file.tail->process().ops;
  file.bytes = file.tail->process().bytes;
  return file.tail->refresh();
}

Result<std::vector<SeenProcess>> LiveRun::look() {
  LOCKSTEP_TRY(refresh());
  static const std::string own_boot = run::own_identity().boot_id;
  const int64_t monotonic = clock_ns(CLOCK_MONOTONIC), realtime = clock_ns(CLOCK_REALTIME);
  std::map<Identity, SeenProcess> by_identity;
  for (auto& [path, file] : files_) {
    const LiveProcess& process = file.tail->process();
    const run::ProcessFile& header = file.file;
    SeenProcess seen;
    seen.host = header.process.host;
    seen.boot_id = header.process.boot_id;
    seen.device =
        model::host_device(process.device, readers::native::field_text(process.header.visible_devices));
    seen.pci = process.pci;
    seen.pid = header.process.pid;
    seen.start_ns = header.start_ns;
    seen.job_id = readers::native::field_text(process.header.job_id);
    seen.rank = static_cast<int32_t>(header.rank);
    seen.world = static_cast<int32_t>(header.world);
    seen.closed = process.header.state != static_cast<uint32_t>(format::FileState::kOpen);
    seen.liveness = run::look_at(header.process);
    // The files' clock runs with the monotonic one, which only the processes of this boot share with us.
    seen.now_ns = header.process.boot_id == own_boot
                      ? file.tail->from_monotonic(static_cast<uint64_t>(monotonic))
                      : realtime;
    if (process.heartbeat_ns != 0)
      seen.heartbeat_age_ns = std::max<int64_t>(seen.now_ns - process.heartbeat_ns, 0);
    add_comms(process, seen);
    if (process.last) seen.last = seen_op(process, *process.last, seen.now_ns);
    if (process.oldest_open) seen.oldest_open = seen_op(process, *process.oldest_open, seen.now_ns);
    seen.open = process.open;
    seen.dropped = process.dropped;
    seen.files.push_back({path, file.tail.get()});
    if (file.looked_ns != 0 && monotonic > file.looked_ns) {
      double seconds = static_cast<double>(monotonic - file.looked_ns) / 1e9;
      seen.ops_per_s = (process.ops - file.ops) / seconds;
      seen.bytes_per_s = (process.bytes - file.bytes) / seconds;
    }
    file.looked_ns = monotonic;
    auto [at, is_new] = by_identity.try_emplace(identity(header.process), std::move(seen));
    // try_emplace() leaves `seen` as it is where the process is known already.
    if (!is_new) merge(at->second, std::move(seen));
  }
  std::vector<SeenProcess> processes;
  for (auto& [identity, process] : by_identity) processes.push_back(std::move(process));
  std::sort(processes.begin(), processes.end(), [](const SeenProcess& a, const SeenProcess& b) {
    return std::tie(a.rank, a.host, a.pid) < std::tie(b.rank, b.host, b.pid);
  });
  return processes;
}

bool LiveRun::behind() const {
  return std::any_of(files_.begin(), files_.end(),
                     [](const auto& file) { return file.second.tail->behind(); });
}

}  // namespace lockstep::live
