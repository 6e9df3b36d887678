// SPDX-License-Identifier: Apache-2.0
// The processes of a run directory as they are now, and what they did since the last look. A process with a
// file for each of several capture libraries is one. Reads little, however large the run is: see
// readers/native/tail/live_tail.h.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "model/job.h"
#include "readers/native/tail/live_tail.h"
#include "run/process_files.h"

namespace lockstep::live {

// A communicator as one process sees it.
struct SeenComm {
  std::string key;  // the same on all its members
  std::string name;
  int32_t rank = -1, ranks = -1;
  bool ended = false;
  bool from_start = true;  // functions that are not named were never called
  std::map<std::string, readers::native::LiveFunction> functions;
};
// One of the files of a process; `tail` until the next look.
struct SeenFile {
  std::string path;
  const readers::native::LiveTail* tail = nullptr;
};
// An operation as one process sees it.
struct SeenOp {
  std::string func, comm;          // comm: its name; empty unknown
  std::optional<uint64_t> number;  // NCCL's, per communicator and function
  int64_t age_ns = 0;              // since it started
};
// A process as the last look found it. Ages are ns: by the monotonic clock for processes of this host's boot,
// else by this host's real time, so those of other hosts are as wrong as the clocks differ.
struct SeenProcess {
  std::string host, boot_id, job_id, pci;
  int32_t device = -1;  // as the host counts it; -1 unknown
  int64_t pid = 0, start_ns = 0;
  int32_t rank = -1, world = -1;
  bool closed = false;
  model::Liveness liveness = model::Liveness::kUnknown;
  int64_t now_ns = 0;             // on the clock of the functions' times
  int64_t heartbeat_age_ns = -1;  // -1 unknown
  std::vector<SeenComm> comms;
  std::optional<SeenOp> last, oldest_open;
  size_t open = 0;
  double ops_per_s = 0, bytes_per_s = 0;  // since the last look; 0 at the first
  uint64_t dropped = 0;
  std::vector<SeenFile> files;
};

// Opens files again at each look, so that it holds few descriptors. One thread.
class LiveRun {
 public:
  using Depth = readers::native::LiveTail::Depth;
  // A run directory, or process files.
  explicit LiveRun(std::vector<std::string> paths, Depth depth = Depth::kNow)
      : paths_(std::move(paths)), depth_(depth) {}
  // By rank, host and pid. An error if no file can be read.
  Result<std::vector<SeenProcess>> look();
  // In the last look; files that could be read before keep what they said.
  size_t unreadable_files() const { return unreadable_; }
  // Depth::kAll: files hold more than one look reads.
  bool behind() const;

 private:
  // A file between two looks, with what rates are taken from.
  struct File {
    std::unique_ptr<readers::native::LiveTail> tail;
    run::ProcessFile file;      // who writes it
    double ops = 0, bytes = 0;  // at the last look
    int64_t looked_ns = 0;      // CLOCK_MONOTONIC; 0 never
  };
  using Identity = std::tuple<std::string, int64_t, uint64_t>;  // boot, pid, start
  static Identity identity(const run::ProcessIdentity& process) {
    return {process.boot_id, process.pid, process.start_ticks};
  }
  Result<void> refresh();
  Result<void> refresh(const std::string& path);

  std::vector<std::string> paths_;
  Depth depth_;
  std::map<std::string, File> files_;  // by path
  std::map<Identity, std::weak_ptr<readers::native::LaunchJoin>> joins_;
  bool has_kernels_ = false;  // a file of a process' GPU work is there
  size_t unreadable_ = 0;
};

}  // namespace lockstep::live
