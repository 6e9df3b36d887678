// SPDX-License-Identifier: Apache-2.0
// Launchers that start ranks again after a failure leave the files of each attempt in one run.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/job.h"

namespace lockstep::model {

// Of a process; ns since the Unix epoch.
struct Life {
  std::string_view job;  // ranks of another job are other ranks
  int32_t rank = -1;     // -1 unknown: never replaced
  int64_t start_ns = 0;  // 0 unknown
  int64_t seen_ns = 0;   // its last sign of life
};
// By process: another one of its rank began after the last sign of life of this one. A process without a rank
// or without any time is never replaced. One without a start replaces none.
std::vector<bool> replaced(std::span<const Life> lives);
// The same of the processes of a job; a rank is one, whatever job its processes name. So is a process that
// shared a communicator with a replaced one and ended before its rank began anew: a launcher may go on with
// fewer ranks.
std::vector<bool> replaced_processes(const Job& job);

}  // namespace lockstep::model
