// SPDX-License-Identifier: Apache-2.0
// Which processes the traced command started: sampled from /proc while it runs, so that a process which ought
// to have left a file and did not is noticed. A process that lives shorter than the sampling period may go
// unseen.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "run/process_info.h"

namespace lockstep::run {

// A process as the last thorough look saw it. `argv` is what may be kept of it; `rank` and `world` are -1
// where its environment gives none.
struct SeenProcess {
  int64_t pid = 0, parent = 0;
  uint64_t start_ticks = 0;
  std::vector<std::string> argv;
  int64_t rank = -1, world = -1;
  bool maps_nccl = false;  // libnccl or librccl was mapped
  bool captures = false;   // a capture library that makes a file was mapped
  bool maps_hsa = false;   // AMD's runtime was mapped
};

// What one launcher saw on its host. It is input again when it is read from a file: every field may be
// anything.
struct CensusReport {
  ProcessIdentity launcher;
  std::vector<SeenProcess> processes;  // parents before their children
  uint64_t unseen = 0;       // processes left out: there were too many, or memory was out; not 0 if so
  bool expects_hsa = false;  // AMD's runtime was told to load our tools library
};
// RUN/census.<host>.<pid>.json, replaced whole. Reading leaves out files that are none.
Result<void> write_census(const std::string& run, const CensusReport& report);
std::vector<CensusReport> read_censuses(const std::string& run);

// Samples the descendants of this process on a thread of its own, from construction to stop().
class Census {
 public:
  // `ignored` tells which children are not the user's. `on_tick` is called on the thread about every ten
  // seconds.
  Census(ProcessIdentity launcher, std::function<bool(int64_t pid)> ignored, std::function<void()> on_tick);
  Census(const Census&) = delete;
  Census& operator=(const Census&) = delete;
  ~Census() { stop(); }
  void stop();
  // After stop().
  const CensusReport& report() const { return report_; }

 private:
  struct Entry {
    size_t row = 0;      // in report_.processes
    uint32_t looks = 0;  // samples that have seen it; 0: it has no row yet
  };
  void run();
  void sample();
  void look(int64_t pid, int64_t parent);

  CensusReport report_;
  std::function<bool(int64_t)> ignored_;
  std::function<void()> on_tick_;
  std::map<std::pair<int64_t, uint64_t>, Entry> entries_;  // by pid and start
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockstep::run
