// SPDX-License-Identifier: Apache-2.0
// The collectives of the members of one communicator whose clocks compare, member against member.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "analysis/straggler/lateness/blame.h"
#include "analysis/straggler/lateness/carried_lateness.h"
#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/lateness/op_finder.h"
#include "analysis/straggler/lateness/peer_comparison.h"

namespace lockstep::analysis::straggler {

// What the comparison of one group found. Sums are exact: they do not depend on the order in which they were
// added up.
struct GroupLateness {
  std::vector<Waits> members;  // by member of the group; blame is not filled in
  std::vector<LateOp> late;    // by operation, then by member
  int64_t first_ns = std::numeric_limits<int64_t>::max(), last_ns = 0;  // arrivals that compare
  uint64_t compared = 0, timed = 0;                                     // operations
};

// compare(), then finish(). One thread for a group; of different groups, any number.
class GroupComparer {
 public:
  // `members`: rows of Job::members, of one communicator and one domain; two or more. What the others refer
  // to is kept by the caller. Of more indexes than most_indexes(), none compares.
  GroupComparer(const model::Job& job, const std::vector<ExclusiveTimes>& times, const MemberTable& table,
                std::vector<uint32_t> members);

  // With `threads` > 1, operations are compared on so many threads at once; the result is the same.
  void compare(size_t threads);
  // What compare() found, until finish().
  std::span<const MemberPast> members() const { return past_; }
  GroupLateness finish();

 private:
  const model::Job& job_;
  const std::vector<ExclusiveTimes>& times_;
  const MemberTable& table_;
  const std::vector<uint32_t> members_;
  std::vector<MemberPast> past_;  // by member
  std::vector<Suspicion> suspicions_;
  GroupLateness result_;
};

}  // namespace lockstep::analysis::straggler
