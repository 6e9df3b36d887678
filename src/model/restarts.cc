// SPDX-License-Identifier: Apache-2.0
#include "model/restarts.h"

#include <algorithm>
#include <map>

namespace lockstep::model {

std::vector<bool> replaced_processes(const Job& job) {
  std::map<int32_t, int64_t> newest_start;
  for (const JobProcess& process : job.processes) {
    int64_t& newest = newest_start.try_emplace(process.row.rank, process.row.start_ns).first->second;
    newest = std::max(newest, process.row.start_ns);
  }
  std::vector<bool> replaced;
  for (const JobProcess& process : job.processes) {
    const Process& row = process.row;
    const int64_t end = std::max({row.start_ns, row.heartbeat_ns, row.last_ns});
    replaced.push_back(row.rank >= 0 && newest_start[row.rank] > end);
  }
  return replaced;
}

}  // namespace lockstep::model
