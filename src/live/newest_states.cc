// SPDX-License-Identifier: Apache-2.0
// Keeps a part of each process in memory and reads it again when its tail says that something has happened. A
// tail is cheap and sees counts; reading is dear and sees everything. So a reading is followed by a rest of a
// hundred times what it cost, and a process that stands still is read at growing intervals. What was read
// stays true as long as the tail shows no progress: only heartbeat and liveness are taken anew.
#include "live/newest_states.h"

#include <time.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "job/assemble/assembled_source.h"
#include "job/gather/newest_part.h"
#include "job/gather/process_part.h"
#include "readers/native/run.h"
#include "run/liveness.h"

namespace lockstep::live {
namespace {

namespace fs = std::filesystem;
using readers::native::LiveProcess;
using readers::native::LiveTail;

// A reading may take a hundredth of the time until the next one.
constexpr int64_t kRest = 100;
// One that stands still is read again after so long, and after twice that: not all that it does is seen
// cheaply.
constexpr int64_t kFirstStillNs = 4'000'000'000, kLastStillNs = 60'000'000'000;
// A process that cannot be looked at, and whose heart has not beaten for so long, has ended.
constexpr int64_t kDeadNs = 60'000'000'000;

int64_t time_of(clockid_t clock) {
  struct timespec time {};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Result<void> NewestStates::find_files() {
  std::error_code error;
  for (fs::directory_iterator it(run_, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".lks") continue;
    const std::string path = it->path().string();
    const auto known = known_.find(path);
    // Who writes a file never changes: its header is read again only while it is not complete.
    if (known != known_.end() && known->second.valid && !known->second.is_building) continue;
    known_.insert_or_assign(path, run::process_file(path));
  }
  if (error) return Error{ErrorCode::kNotFound, "cannot be listed: " + error.message(), run_};
  static const std::string own_boot = run::own_identity().boot_id;
  const auto is_own = [](const auto& file) { return file.second.process.boot_id == own_boot; };
  // On a shared file system each host looks at its own processes, whose liveness only it can see.
  const bool any_own = std::any_of(known_.begin(), known_.end(), is_own);
  for (const auto& file : known_) {
    if (file.second.valid && !file.second.is_building && (is_own(file) || !any_own)) add(file.second);
  }
  if (any_own)
    std::erase_if(processes_, [](const auto& process) { return std::get<1>(process.first) != own_boot; });
  if (processes_.empty()) return Error{ErrorCode::kNotFound, "holds no process files (*.lks) yet", run_};
  return {};
}

void NewestStates::add(const run::ProcessFile& file) {
  const run::ProcessIdentity& of = file.process;
  Process& process = processes_[{of.host, of.boot_id, of.pid_namespace, of.pid, of.start_ticks}];
  if (std::none_of(process.files.begin(), process.files.end(),
                   [&](const File& known) { return known.file.path == file.path; }))
    process.files.push_back({file, nullptr});
}

bool NewestStates::refresh(Process& process) {
  std::vector<Progress> progress;
  for (File& file : process.files) {
    Progress& now = progress.emplace_back();
    if (file.tail) {
      // A file that cannot be read any more shows up as a change.
      if (!file.tail->refresh()) continue;
    } else if (auto tail = LiveTail::open(file.file.path)) {
      file.tail = *std::move(tail);
    } else {
      continue;
    }
    const LiveProcess& seen = file.tail->process();
    now.ops = seen.ops;
    now.dropped = seen.dropped;
    now.comms = static_cast<size_t>(
        std::count_if(seen.comms.begin(), seen.comms.end(), [](const auto& comm) { return !comm.ended; }));
    now.open = seen.open;
    now.last_ns = seen.last ? seen.last->started_ns : 0;
    now.oldest_open_ns = seen.oldest_open ? seen.oldest_open->started_ns : 0;
    now.closed = seen.header.state != static_cast<uint32_t>(format::FileState::kOpen);
  }
  const bool has_moved = std::exchange(process.progress, progress) != progress;
  process.still = has_moved ? 0 : process.still + 1;
  if (has_moved) process.is_read = false;
  return has_moved;
}

// Clocks of one host come from all of its files, so they are opened together.
Result<void> NewestStates::read_due(const std::vector<Process*>& due) {
  std::vector<std::string> paths;
  for (const auto& [key, process] : processes_)
    for (const File& file : process.files) paths.push_back(file.file.path);
  LOCKSTEP_ASSIGN(auto raw, readers::native::Run::open(std::move(paths)));
  const auto& run = static_cast<const readers::native::Run&>(*raw);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < run.processes(); ++i)
    for (const std::string& path : run.paths(i)) places[path] = i;
  const auto source = job::assemble::assembled(std::move(raw));
  for (Process* process : due) {
    const auto place = places.find(process->files.front().file.path);
    if (place == places.end()) continue;
    const int64_t began_ns = time_of(CLOCK_PROCESS_CPUTIME_ID);
    model::Trace trace;
    if (!source->load(place->second, trace)) continue;
    auto part = std::make_shared<model::ProcessPart>(job::gather::make_part(std::move(trace)));
    const int64_t heartbeat_ns = heartbeat_of(*process);
    // A process that stands still may be stuck, and its older operations show whom it waits for.
    const bool is_moving = process->still == 0 && lives(*process, heartbeat_ns);
    job::gather::keep_newest(*part, is_moving ? kMoving : kStanding);
    process->state.part = std::move(part);
    process->heartbeat_ns = heartbeat_ns;
    process->is_read = true;
    // CPU time and not time by the clock: waiting for storage costs no core.
    const int64_t cost_ns = time_of(CLOCK_PROCESS_CPUTIME_ID) - began_ns;
    const int64_t still_ns = std::min(kFirstStillNs << std::min(process->still, 4U), kLastStillNs);
    process->next_read_ns = time_of(CLOCK_MONOTONIC) + std::max(kRest * cost_ns, is_moving ? 0 : still_ns);
  }
  return {};
}

int64_t NewestStates::heartbeat_of(const Process& process) {
  int64_t heartbeat_ns = 0;
  for (const File& file : process.files) {
    if (file.tail) heartbeat_ns = std::max(heartbeat_ns, file.tail->process().heartbeat_ns);
  }
  return heartbeat_ns;
}

bool NewestStates::lives(const Process& process, int64_t heartbeat_ns) {
  const model::Liveness liveness = run::look_at(process.files.front().file.process);
  return liveness == model::Liveness::kRunning ||
         (liveness == model::Liveness::kUnknown && run::beats(heartbeat_ns, time_of(CLOCK_REALTIME)));
}

void NewestStates::complete(Process& process) {
  const int64_t heartbeat_ns = heartbeat_of(process);
  model::FollowedProcess& state = process.state;
  // Nothing has happened since the part was read: it shows now, too.
  if (process.is_read) {
    const model::Process& row = state.part->process.row;
    state.heartbeat_ns = row.heartbeat_ns == 0 ? 0 : row.heartbeat_ns + heartbeat_ns - process.heartbeat_ns;
    state.closed = row.closed != 0;
  }
  state.liveness = run::look_at(process.files.front().file.process);
  state.seen_ns = time_of(CLOCK_REALTIME);
  state.beats =
      state.liveness == model::Liveness::kUnknown && !state.closed && run::beats(heartbeat_ns, state.seen_ns);
  // A process has ended for the caller only once its last state was read.
  all_ended_ = all_ended_ && has_ended(process, state.liveness) && process.is_read;
}

bool NewestStates::has_ended(const Process& process, model::Liveness liveness) {
  return process.state.closed || liveness == model::Liveness::kGone ||
         (liveness == model::Liveness::kUnknown &&
          std::abs(time_of(CLOCK_REALTIME) - heartbeat_of(process)) > kDeadNs);
}

Result<std::vector<model::FollowedProcess>> NewestStates::look(bool is_last) {
  all_ended_ = false;
  if (auto found = find_files(); !found) {
    all_ended_ =
        !processes_.empty() && std::all_of(processes_.begin(), processes_.end(), [](const auto& one) {
          return has_ended(one.second, run::look_at(one.second.files.front().file.process));
        });
    return found.error();
  }
  const int64_t now_ns = time_of(CLOCK_MONOTONIC);
  std::vector<Process*> due;
  for (auto& [key, process] : processes_) {
    refresh(process);
    const bool is_first = process.state.part == nullptr;
    // What moves is sent at once, if that is cheap; what stands still, with all that its rank has under way.
    const bool is_wanted = !process.is_read || process.still > 0;
    if (is_first || (is_wanted && (is_last || now_ns >= process.next_read_ns))) due.push_back(&process);
  }
  if (!due.empty()) LOCKSTEP_TRY(read_due(due));
  all_ended_ = true;
  std::vector<model::FollowedProcess> states;
  for (auto& [key, process] : processes_) {
    // A process whose file could not be read yet may still be alive.
    if (process.state.part == nullptr) {
      all_ended_ = false;
      continue;
    }
    complete(process);
    states.push_back(process.state);
  }
  return states;
}

}  // namespace lockstep::live
