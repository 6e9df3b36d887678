// SPDX-License-Identifier: Apache-2.0
// Who may stand behind an operation that does not go on, where nothing shows what the GPUs do.
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/hang/blocks.h"

namespace lockstep::analysis::hang {

// By actor. Whoever waits in the block, since it called that; and whoever has called an operation together
// with one of these that called it later, and so on: its GPU may not get through before theirs.
std::vector<bool> may_stand_behind(const JobState& job_state, const Block& block);

}  // namespace lockstep::analysis::hang
