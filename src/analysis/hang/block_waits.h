// SPDX-License-Identifier: Apache-2.0
// Who waits in a block, and for how long.
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/hang/blocks.h"

namespace lockstep::analysis::hang {

// When the member (a row of the job) came to wait in operation `op` of its process: as its GPU began it,
// where that is known, since a host may call it long before; else as it was called. On the process's clock,
// in ns; 0 unknown.
int64_t waits_since(const JobState& job_state, uint32_t member, uint32_t op);
// The member (a row of the job) is in operation `op` of its process.
void add_waiting(const JobState& job_state, uint32_t member, uint32_t op, Block& block);
// Sorts its actors, and lets those who wait do so for as long as anybody was watched.
void finish(const JobState& job_state, Block& block);
// Longer than the run's own cadence explains.
bool lasts(const Block& block);
// Of those that stand behind something older, whoever waits in no such thing is in the operation itself: its
// GPU times are incomplete, and it cannot leave what the others have not joined. Drops blocks that nobody
// waits in for long then.
void join_those_behind(const JobState& job_state, std::vector<Block>& blocks);

}  // namespace lockstep::analysis::hang
