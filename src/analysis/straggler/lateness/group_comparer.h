// SPDX-License-Identifier: Apache-2.0
// The collectives of the members of one communicator whose clocks compare, member against member.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "analysis/straggler/lateness/blame.h"
#include "analysis/straggler/lateness/carry.h"
#include "analysis/straggler/lateness/company.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/lateness/op_finder.h"
#include "analysis/straggler/lateness/own_times.h"

namespace lockstep::analysis::straggler {

// What the comparison of one group found. Sums are exact: they do not depend on the order in which they were added up.
struct GroupLateness {
  std::vector<Waits> members;  // by member of the group; blame is not filled in
  std::vector<LateOp> late;    // by operation, then by member
  int64_t first_ns = std::numeric_limits<int64_t>::max(), last_ns = 0;  // arrivals that compare
  uint64_t compared = 0, timed = 0;                                     // operations
};

// compare(), then settle(). One thread for a group; of different groups, any number.
class GroupComparer {
 public:
  // `members`: rows of Job::members, of one communicator and one domain; two or more. What the others refer to is kept by
  // the caller. Of more indexes than most_indexes(), none compares.
  GroupComparer(const model::Job& job, const std::vector<OwnTimes>& times, const Seats& seats,
                std::vector<uint32_t> members);

  // With `threads` > 1, operations are compared on so many threads at once; the result is the same.
  void compare(size_t threads);
  // What compare() found, until settle().
  std::span<const MemberPast> members() const { return past_; }
  GroupLateness settle();

 private:
  const model::Job& job_;
  const std::vector<OwnTimes>& times_;
  const Seats& seats_;
  const std::vector<uint32_t> members_;
  std::vector<MemberPast> past_;  // by member
  std::vector<Suspicion> suspicions_;
  GroupLateness result_;
};

}  // namespace lockstep::analysis::straggler
