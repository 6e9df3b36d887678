// SPDX-License-Identifier: Apache-2.0
// Where in the program the ranks of a block are, where that is known: one line for ranks at one place.
#pragma once
#include <string>
#include <vector>

#include "analysis/hang/blocks.h"

namespace lockstep::analysis::hang {

// "ranks 0-4, 6 and 7 are in AllReduce at train.py:95 (step)", "the last of rank 5 was Broadcast at
// data.py:41 (load)"
void add_places(const JobState& job_state, const Block& block, std::vector<std::string>& lines);

}  // namespace lockstep::analysis::hang
