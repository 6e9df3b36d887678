// SPDX-License-Identifier: Apache-2.0
// What the GPU's times say of the operations that a rank has called: which are done, which run, which stand
// behind others.
#pragma once
#include <cstdint>

#include "analysis/hang/job_state.h"

namespace lockstep::analysis::hang {

// What the GPU says of a member's operations from `first` on.
struct Progress {
  enum class State : uint8_t {
    kUnknown,  // no GPU times
    kDone,
    kQueued,   // an earlier one ended; this one has not begun
    kRunning,  // begun, not ended
  } state = State::kUnknown;
  uint32_t op = 0;  // the oldest that is not done
};
// `begun`: see JobState::begun; 0 for sends and receives.
Progress progress(const model::JobOps& ops, uint32_t first, uint32_t count, uint32_t begun = 0);
// Of a member's collectives.
Progress progress(const JobState& job_state, const model::Member& member);

// GPU times show that operation `op` of a bucket that begins at `first` has not begun, while one before it
// has.
bool queued(const model::JobOps& ops, uint32_t first, uint32_t op, uint32_t begun = 0);
// Nothing that the rank called before `op`, on any communicator, is known to be unfinished.
bool is_oldest_unfinished(const JobState& job_state, uint32_t actor, uint32_t op);

}  // namespace lockstep::analysis::hang
