// SPDX-License-Identifier: Apache-2.0
// Work that is done beside a collective, while the rank waits in it for others. The rank that comes last has
// nobody to wait for, so all of its work shows as its own time; that of the others does not, though it is no
// less. Once a rank has come late to a row of collectives, as where gradients are reduced bucket by bucket
// while the next are computed, it would seem to work longer than all others in each of them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/straggler/lateness/carried_lateness.h"
#include "analysis/straggler/lateness/exclusive_times.h"
#include "analysis/straggler/lateness/units.h"
#include "model/job.h"

namespace lockstep::analysis::straggler {

class HiddenWork {
 public:
  // `times`: by process. Both stay where they are. Cost is linear in operations.
  HiddenWork(const model::Job& job, std::span<const ExclusiveTimes> times);
  // How long a process worked beside the collective before each operation, ns, by position in JobOps; 0 where
  // nothing shows that it did.
  std::vector<float> of(uint32_t process) const;
  // Whether a member hid work before the operation, so that the gaps before it do not compare; by position.
  std::vector<bool> near(uint32_t process) const;

 private:
  struct Comm {
    // By index from `oldest`: the shortest time that a member was in it; kNobody: in nobody's record.
    uint32_t oldest = 0;
    std::vector<int64_t> shortest_ns;
    std::vector<bool> hides;  // whether a member hid work before it
    Rounds rounds;
    std::vector<BesideChanges> beside;  // by place in a round, of the operation after
  };
  void find_shortest(const model::JobComm& of, Comm& comm) const;
  void look_beside(const model::JobComm& of, Comm& comm) const;
  // Calls visit(op, before) for each collective of the member right before which its process called another.
  template <class Visit>
  void for_each_pair(const model::Member& member, const Visit& visit) const;
  // Position in the columns of a communicator; beyond them where they do not have it.
  uint64_t column_of(const model::Member& member, uint32_t op) const {
    return uint64_t{job_.ops(member).index[op]} - comms_[member.comm].oldest;
  }
  int64_t length_ns(const model::Member& member, uint32_t op) const;  // 0: not known
  int64_t wait_ns(const model::Member& member, uint32_t op) const;
  int64_t gap_ns(const model::Member& member, uint32_t before, uint32_t op) const;

  const model::Job& job_;
  std::span<const ExclusiveTimes> times_;
  std::vector<Comm> comms_;
};

}  // namespace lockstep::analysis::straggler
