// SPDX-License-Identifier: Apache-2.0
// A communicator that holds every process once numbers the ranks of the job, and these files give no other
// number. One in which two processes claim a rank does not count: it does not number one job.
#include "readers/common/world.h"

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::readers::common {

World find_world(const std::vector<std::vector<Membership>>& processes) {
  struct Use {
    size_t members = 0;
    int32_t ranks = -1;
    std::set<int32_t> taken;
  };
  std::map<uint64_t, Use> uses;
  for (const auto& process : processes) {
    for (const Membership& member : process) {
      Use& use = uses[member.comm];
      ++use.members;
      use.ranks = std::max(use.ranks, member.ranks);
      use.taken.insert(member.rank);
    }
  }
  World world;
  for (const auto& [comm, use] : uses) {
    const bool has_all = use.members == processes.size() && use.taken.size() == processes.size();
    if (has_all && (world.comm == 0 || use.ranks > world.ranks)) world = {comm, use.ranks};
  }
  return world;
}

}  // namespace lockstep::readers::common
