// SPDX-License-Identifier: Apache-2.0
// What rules ask of a job's snapshots, and how they answer.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/finding.h"
#include "analysis/ras_rules/jobs.h"
#include "readers/ras/ras_model.h"

namespace lockstep::analysis::ras_rules {

using readers::ras::Comm;
using readers::ras::MissingRank;
using readers::ras::Rank;
using readers::ras::RankPlace;
using readers::ras::Snapshot;

// What a rule found in one communicator.
struct Case {
  Severity severity = Severity::kCritical;
  std::vector<const RankPlace*> blamed;
  std::string what;                   // follows "rank 5" or "ranks 5 and 6"
  std::vector<std::string> evidence;  // beside what is known of those who are blamed
  std::string func;                   // empty: none
  std::optional<uint64_t> op_index;
  std::string needed_evidence;
};

class View {
 public:
  // The snapshots outlive the view.
  explicit View(const Job& job);

  // The newest that is whole; else the newest.
  const Snapshot& now() const { return *now_; }
  // The same communicator in an earlier snapshot of another time, the newest; null: none shows it.
  const Comm* before(const Comm& comm) const;
  const std::string& time_before(const Comm& comm) const;
  // Rank of the job; -1 where the snapshot does not say.
  int32_t global_rank(const RankPlace& place) const;
  // "communicator 0xabc of 8 ranks"
  static std::string name(const Comm& comm);
  // "rank 5", with "of communicator 0xabc" where ranks of the job are not known.
  std::string who(const Comm& comm, const std::vector<const RankPlace*>& ranks) const;
  // "rank 5: process 105 on 192.0.2.1, GPU 5"
  std::string place(const RankPlace& rank) const;

 private:
  using Device = std::tuple<std::string, int64_t, int32_t>;  // host, pid, device in it
  struct Earlier {
    const Comm* comm = nullptr;
    const Snapshot* snapshot = nullptr;
  };
  Earlier earlier(const Comm& comm) const;

  const Snapshot* now_;
  std::map<Device, int32_t> global_;
  std::map<std::string, Earlier> earlier_;  // by hash
};

// The rank's operations on a communicator, over all functions.
uint64_t launched(const Rank& rank);
uint64_t launched(const Rank& rank, const std::string& func);
const Rank* find(const Comm& comm, int32_t rank);
// "9 operations (AllReduce 8, Broadcast 1)"
std::string operations(const Rank& rank);

}  // namespace lockstep::analysis::ras_rules
