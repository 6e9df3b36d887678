// SPDX-License-Identifier: Apache-2.0
#include "model/restarts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::model {

namespace {

using Rank = std::pair<std::string_view, int32_t>;  // of a job

int64_t end_of(const Life& life) { return std::max(life.start_ns, life.seen_ns); }

std::map<Rank, int64_t> newest_starts(std::span<const Life> lives) {
  std::map<Rank, int64_t> newest;
  for (const Life& life : lives) {
    int64_t& start = newest.try_emplace({life.job, life.rank}, life.start_ns).first->second;
    start = std::max(start, life.start_ns);
  }
  return newest;
}

// A launcher may go on with fewer ranks: nothing takes the place of the others, but it began anew after their end for those
// that they communicated with.
bool is_of_older_attempt(const Job& job, const std::vector<Life>& lives, const std::vector<bool>& replaced,
                         const std::map<Rank, int64_t>& newest, size_t process) {
  for (uint32_t row : job.processes[process].members) {
    for (uint32_t other : job.comms[job.members[row].comm].members) {
      if (other == kNoRow) continue;
      const uint32_t peer = job.members[other].process;
      if (replaced[peer] && newest.at({lives[peer].job, lives[peer].rank}) > end_of(lives[process]))
        return true;
    }
  }
  return false;
}

}  // namespace

std::vector<bool> replaced(std::span<const Life> lives) {
  const std::map<Rank, int64_t> newest = newest_starts(lives);
  std::vector<bool> replaced;
  for (const Life& life : lives)
    replaced.push_back(life.rank >= 0 && newest.at({life.job, life.rank}) > end_of(life));
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
  const std::vector<bool> by_rank = replaced(lives);
  std::vector<bool> all = by_rank;
  const std::map<Rank, int64_t> newest = newest_starts(lives);
  for (size_t p = 0; p < lives.size(); ++p)
    all[p] = by_rank[p] || is_of_older_attempt(job, lives, by_rank, newest, p);
  return all;
}

}  // namespace lockstep::model
