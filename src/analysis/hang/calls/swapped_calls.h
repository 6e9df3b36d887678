// SPDX-License-Identifier: Apache-2.0
// Two communicators whose operations some ranks call the other way round: where nothing shows what the GPUs
// do, the only trace of a deadlock between communicators.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/hang/blocks.h"

namespace lockstep::analysis::hang {

struct SwappedCalls {
  struct Side {
    uint32_t block = 0;            // of the communicator
    uint32_t index = 0;            // of the operation
    std::vector<uint32_t> actors;  // who called it before the other side's, ascending
  } a, b;
};

// Looks at the newest operations of communicators that stand still. Ranks that differ at more than a place or
// two prove nothing: then the order is free.
std::optional<SwappedCalls> find_swapped_calls(const JobState& job_state, const std::vector<Block>& blocks);

}  // namespace lockstep::analysis::hang
