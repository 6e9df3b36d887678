// SPDX-License-Identifier: Apache-2.0
// Times decide: a process is replaced if its rank began anew after its last sign of life. Two of one rank
// that lived at once are no restart, and both stay.
#include "model/restarts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::model {
namespace {

using Rank = std::pair<std::string_view, int32_t>;  // of a job

// Of one whose times are all unknown nobody can say that it ended before another began.
int64_t end_of(const Life& life) {
  const int64_t end_ns = std::max(life.start_ns, life.seen_ns);
  return end_ns == 0 ? INT64_MAX : end_ns;
}

std::map<Rank, int64_t> newest_starts(std::span<const Life> lives) {
  std::map<Rank, int64_t> newest;
  for (const Life& life : lives) {
    int64_t& start = newest.try_emplace({life.job, life.rank}, life.start_ns).first->second;
    start = std::max(start, life.start_ns);
  }
  return newest;
}

// By communicator: when the newest rank of it that was started again began anew; INT64_MIN if none was.
std::vector<int64_t> anew_by_comm(const Job& job, const std::vector<Life>& lives,
                                  const std::vector<bool>& replaced, const std::map<Rank, int64_t>& newest) {
  std::vector<int64_t> anew(job.comms.size(), INT64_MIN);
  for (const Member& member : job.members) {
    if (!replaced[member.process]) continue;
    const Life& life = lives[member.process];
    anew[member.comm] = std::max(anew[member.comm], newest.at({life.job, life.rank}));
  }
  return anew;
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
  // A launcher may go on with fewer ranks: nothing takes the place of the others, but it began anew after
  // their end for those that they communicated with.
  std::vector<bool> gone = replaced(lives);
  const std::vector<int64_t> anew = anew_by_comm(job, lives, gone, newest_starts(lives));
  for (const Member& member : job.members) {
    if (anew[member.comm] > end_of(lives[member.process])) gone[member.process] = true;
  }
  return gone;
}

}  // namespace lockstep::model
