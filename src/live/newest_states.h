// SPDX-License-Identifier: Apache-2.0
// The newest state of each process of a run that this host sees, as the analyses need it: read with the same
// code as a finished run, but only when something has changed, and so seldom that it costs a hundredth of a
// core. In between, readers/native/tail/live_tail.h says cheaply whether anything has.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "model/process_part.h"
#include "readers/native/tail/live_tail.h"
#include "run/process_files.h"

namespace lockstep::live {

// One thread.
class NewestStates {
 public:
  // Operations that are kept of each communicator and lane, while its process moves and once it stands still.
  static constexpr uint32_t kMoving = 32, kStanding = 512;

  explicit NewestStates(std::string run) : run_(std::move(run)) {}
  // Of the processes of this host's boot; of all, where none is of it. kNotFound: there is none yet.
  // The last look reads all that has happened, whatever that costs.
  Result<std::vector<model::FollowedProcess>> look(bool is_last = false);
  // Every process of the last look has ended; after one that failed, every process that was ever seen.
  bool all_ended() const { return all_ended_; }

 private:
  // What shows that a process has done something.
  struct Progress {
    double ops = 0;
    uint64_t dropped = 0;
    size_t comms = 0, open = 0;
    int64_t last_ns = 0, oldest_open_ns = 0;
    bool closed = false;
    bool operator==(const Progress&) const = default;
  };
  // A file of a process; `tail` is null until it could be opened.
  struct File {
    run::ProcessFile file;
    std::unique_ptr<readers::native::LiveTail> tail;
  };
  // A process with all of its capture libraries' files.
  struct Process {
    std::vector<File> files;
    std::vector<Progress> progress;  // of each file, at the last look
    bool is_read = false;            // the part has all of that
    uint32_t still = 0;              // looks since it moved
    int64_t next_read_ns = 0;        // CLOCK_MONOTONIC
    int64_t heartbeat_ns = 0;        // of the tails, when the part was read
    model::FollowedProcess state;
  };
  // Host, boot, pid namespace, pid and start.
  using Key = std::tuple<std::string, std::string, uint64_t, int64_t, uint64_t>;

  Result<void> find_files();
  void add(const run::ProcessFile& file);
  // Whether it has done something since the last look; its files are read as far as that takes.
  bool refresh(Process& process);
  Result<void> read_due(const std::vector<Process*>& due);
  // The newest of its files; 0: none has one. ns since the Unix epoch.
  static int64_t heartbeat_of(const Process& process);
  // It runs, or cannot be looked at and its heartbeat is of now.
  static bool lives(const Process& process, int64_t heartbeat_ns);
  static bool has_ended(const Process& process, model::Liveness liveness);
  // Sets what is true of now, whatever was read when: heartbeat, liveness, and whether it has ended.
  void complete(Process& process);

  std::string run_;
  std::map<std::string, run::ProcessFile> known_;  // files, by path
  std::map<Key, Process> processes_;
  bool all_ended_ = false;
};

}  // namespace lockstep::live
