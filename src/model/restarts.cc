// SPDX-License-Identifier: Apache-2.0
#include "model/restarts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::model {

std::vector<bool> replaced(std::span<const Life> lives) {
  std::map<std::pair<std::string_view, int32_t>, int64_t> newest_start;
  for (const Life& life : lives) {
    int64_t& newest = newest_start.try_emplace({life.job, life.rank}, life.start_ns).first->second;
    newest = std::max(newest, life.start_ns);
  }
  std::vector<bool> replaced;
  for (const Life& life : lives) {
    const int64_t end = std::max(life.start_ns, life.seen_ns);
    replaced.push_back(life.rank >= 0 && newest_start[{life.job, life.rank}] > end);
  }
  return replaced;
}

std::vector<bool> replaced_processes(const Job& job) {
  std::vector<Life> lives;
  for (const JobProcess& process : job.processes) {
    const Process& row = process.row;
    lives.push_back({.job = {},
                     .rank = row.rank,
                     .start_ns = row.start_ns,
                     .seen_ns = std::max(row.heartbeat_ns, row.last_ns)});
  }
  return replaced(lives);
}

}  // namespace lockstep::model
