// SPDX-License-Identifier: Apache-2.0
// What a diagnosis could see of a run, and what not: a verdict is worth as much as this.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "verdict/diagnosed_run.h"

namespace lockstep::verdict {

struct Coverage {
  size_t processes = 0, hosts = 0;            // hosts: that have a name
  std::vector<int32_t> ranks, missing_ranks;  // ascending; missing: of the world that a launcher named
  uint64_t ops = 0, matched = 0;
  std::array<uint64_t, job::match::kReasons> unmatched{};
  uint64_t gpu_timed = 0;                   // operations with a GPU time
  bool is_amd = false;                      // any GPU is AMD's
  bool network_expected = false;            // a communicator spans nodes
  bool network_seen = false;                // transfers were recorded
  size_t clocks = 0, unaligned_clocks = 0;  // boots of hosts, and hosts without one
  int64_t clock_half_width_ns = 0;          // the widest of the aligned ones, at the newest record
  uint64_t clock_contradictions = 0;
  std::array<size_t, 4> alive{};  // processes of named hosts whose file is open, by Liveness
  size_t beating = 0;             // of those that nobody could look at: their heartbeat is of this moment
  size_t replaced = 0;            // more of them: not alive, and their ranks were started again
  std::vector<std::string> unseen_hosts;  // of open processes that nobody could look at
  int64_t newest_ns = 0;                  // record or heartbeat, on its host's clock

  bool still_runs() const {
    return alive[static_cast<size_t>(model::Liveness::kRunning)] +
               alive[static_cast<size_t>(model::Liveness::kStopped)] + beating >
           0;
  }
};
// Of evidence that holds a job.
Coverage cover(const Evidence& evidence);

// "8 ranks on 1 host, 12,345 operations matched across ranks, clocks within +-12 us"
std::string seen_sentence(const Coverage& coverage);
// "8 processes still run"; empty when all files are closed or nobody could look.
std::string alive_sentence(const Coverage& coverage);
// One sentence for each thing that the diagnosis had to do without, and what would change that.
std::vector<std::string> not_seen(const Coverage& coverage);

// Ranks that one kind of evidence mentions and another does not: who, and the setting that makes them leave
// it.
std::vector<std::string> absent_from(const DiagnosedRun& run);

}  // namespace lockstep::verdict
