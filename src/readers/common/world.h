// SPDX-License-Identifier: Apache-2.0
// Ranks of the job, where files give only ranks in communicators.
#pragma once
#include <cstdint>
#include <vector>

namespace lockstep::readers::common {

struct Membership {
  uint64_t comm = 0;
  int32_t rank = -1, ranks = -1;  // `ranks` -1: unknown
};

struct World {
  uint64_t comm = 0;  // 0: nothing is known of a job whose processes do not share a communicator
  int32_t ranks = -1;
};

// The largest communicator that every process is in once, each with a rank of its own; by process.
World find_world(const std::vector<std::vector<Membership>>& processes);

}  // namespace lockstep::readers::common
