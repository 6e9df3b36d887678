// SPDX-License-Identifier: Apache-2.0
// Sorts snapshots into jobs, as no snapshot names its job. Two that show one communicator or one process are
// of the same job, and so are those that a third one joins: a union-find over the rows of snapshots.
#include "analysis/ras_rules/jobs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace lockstep::analysis::ras_rules {
namespace {

using readers::ras::Comm;
using readers::ras::RankPlace;
using readers::ras::Snapshot;

class Jobs {
 public:
  explicit Jobs(size_t snapshots) : joined_(snapshots) {
    std::iota(joined_.begin(), joined_.end(), size_t{0});
  }

  void add(size_t row, const Snapshot& snapshot) {
    for (const Comm& comm : snapshot.comms) {
      if (!comm.hash.empty()) join(row, comms_, std::pair(comm.hash, comm.size));
      for (const RankPlace& rank : comm.ranks) add_process(row, rank);
      for (const RankPlace& rank : comm.missing) add_process(row, rank);
    }
  }
  // The last snapshot of the job that this one is of.
  size_t last_of(size_t row) {
    // Halves the way while it walks it, so that chains stay short.
    while (joined_[row] != row) row = joined_[row] = joined_[joined_[row]];
    return row;
  }

 private:
  void add_process(size_t row, const RankPlace& rank) {
    // A number of a process names it on its host alone.
    if (!rank.host.empty() && rank.pid >= 0) join(row, processes_, std::pair(rank.host, rank.pid));
  }
  template <class Key>
  void join(size_t row, std::map<Key, size_t>& known, const Key& key) {
    const auto [at, is_new] = known.try_emplace(key, row);
    if (is_new || at->second == row) return;
    const size_t a = last_of(at->second), b = last_of(row);
    // The later row stands for all: jobs come out in the order of their newest snapshots.
    joined_[std::min(a, b)] = std::max(a, b);
  }

  std::vector<size_t> joined_;  // by snapshot: a later one of its job, or itself
  std::map<std::pair<std::string, int32_t>, size_t> comms_;
  std::map<std::pair<std::string, int64_t>, size_t> processes_;
};

}  // namespace

std::vector<Job> jobs_of(const readers::ras::RasModel& model) {
  Jobs jobs(model.snapshots.size());
  for (size_t row = 0; row < model.snapshots.size(); ++row) jobs.add(row, model.snapshots[row]);
  std::map<size_t, Job, std::greater<>> by_last;
  for (size_t row = 0; row < model.snapshots.size(); ++row) {
    const Snapshot& snapshot = model.snapshots[row];
    // One without a communicator is of any job, but for a text that has none because all are in order.
    if (!snapshot.comms.empty() || (snapshot.is_text && !snapshot.cut))
      by_last[jobs.last_of(row)].push_back(&snapshot);
  }
  std::vector<Job> out;
  for (auto& [last, job] : by_last) out.push_back(std::move(job));
  if (out.empty() && !model.snapshots.empty()) out.push_back({&model.snapshots.back()});
  return out;
}

}  // namespace lockstep::analysis::ras_rules
