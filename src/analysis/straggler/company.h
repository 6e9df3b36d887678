// SPDX-License-Identifier: Apache-2.0
// What a rank that came late has in common with those whom it was with just before. Lateness that they share came from
// elsewhere: they waited together, as ranks of a model replica do for another stage of their pipeline.
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/straggler/own_times.h"

namespace lockstep::analysis::straggler {

// One thread. Cost is linear in the members that are asked for.
class Company {
 public:
  // kUnbounded: nobody to compare with.
  static constexpr float kUnbounded = std::numeric_limits<float>::max();

  Company(const model::Job& job, const std::vector<OwnTimes>& times) : job_(job), times_(times) {}

  // By hosts alone: how much later a process called `op` than the others of its last collective on a communicator other
  // than that of `member` made the call that follows theirs.
  float later_than_others(const model::Member& member, uint32_t op);
  // By hosts alone: how late the process called its last collective before `op`.
  float late_before(const model::Member& member, uint32_t op);
  // By GPU times: how much longer a member took from the operation that it left last to `op`, than the other members
  // from the same operation of theirs. What overlaps with the wait of one of them ends at another time for each.
  float longer_than_others(const model::Member& member, uint32_t op);

 private:
  template <class OfOther>
  float against_others(const model::Member& with, uint32_t op, OfOther of_other);
  const model::Member* collective_of(uint32_t process, uint32_t op) const;
  bool comparable(const model::Member& a, const model::Member& b) const;
  float median();

  const model::Job& job_;
  const std::vector<OwnTimes>& times_;
  std::vector<float> values_;
};

}  // namespace lockstep::analysis::straggler
