// SPDX-License-Identifier: Apache-2.0
// What a rank that came late has in common with those whom it was with just before. Lateness that they share
// came from elsewhere: they waited together, as ranks of a model replica do for another stage of their
// pipeline.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/op_finder.h"

namespace lockstep::analysis::straggler {

// Who sits at each communicator, of those whose times and indexes compare with anybody's. Any number of
// threads reads it.
class MemberTable {
 public:
  struct Row {
    OpFinder ops;
    const ExclusiveTimes* times;
  };

  // Both stay where they are.
  MemberTable(const model::Job& job, const std::vector<ExclusiveTimes>& times);
  // By rank. `comm`: row of Job::comms. `domain`: of ExclusiveTimes.
  std::span<const Row> of(uint32_t comm, uint32_t domain) const;

 private:
  std::vector<Row> table_;     // by communicator, domain and rank
  std::vector<size_t> begin_;  // by communicator, and the end
};

// One thread. Cost is linear in the members that are asked for.
class PeerComparison {
 public:
  // kUnbounded: nobody to compare with.
  static constexpr float kUnbounded = std::numeric_limits<float>::max();

  PeerComparison(const model::Job& job, const std::vector<ExclusiveTimes>& times, const MemberTable& table)
      : job_(job), times_(times), table_(table) {}

  // By hosts alone: how much later a process called `op` than the others of its last collective on a
  // communicator other than that of `member` made the call that follows theirs.
  float later_than_others(const model::Member& member, uint32_t op);
  // By hosts alone: how late the process called its last collective before `op`.
  float late_before(const model::Member& member, uint32_t op);
  // By hosts alone: whether those who called the process' last collective before `op` waited for all of them
  // in it. Then most make the call that follows theirs at one time, after the last of them called it, however
  // far apart they had called it. Nothing if they had called it nearly at one time, or if too few compare.
  std::optional<bool> waited_before(const model::Member& member, uint32_t op);
  // By GPU times: how much longer a member took from the operation that it left last to `op`, than the other
  // members from the same operation of theirs. What overlaps with the wait of one of them ends at another
  // time for each.
  float longer_than_others(const model::Member& member, uint32_t op);

 private:
  // A collective of others, and how many calls before `op` the process called it; nullptr: none.
  struct Before {
    const model::Member* with = nullptr;
    uint32_t op = 0, back = 0;
  };
  Before collective_before(uint32_t process, uint32_t op) const;
  template <class OfOther>
  float against_others(const model::Member& with, uint32_t op, OfOther of_other);
  const model::Member* collective_of(uint32_t process, uint32_t op) const;

  const model::Job& job_;
  const std::vector<ExclusiveTimes>& times_;
  const MemberTable& table_;
  std::vector<float> values_;
};

}  // namespace lockstep::analysis::straggler
