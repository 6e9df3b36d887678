// SPDX-License-Identifier: Apache-2.0
// The largest job that a file may describe. Files are hostile, and tables are made as large as such numbers
// say.
#pragma once
#include <cstdint>

#include "model/trace.h"

namespace lockstep::model {

// Far above any job that runs today; a table of so many ranks still fits in memory.
inline constexpr int32_t kMostRanks = 1 << 22;
// Of all communicators of a job together.
inline constexpr int64_t kMostMembers = int64_t{1} << 24;

// Makes the ranks, sizes and hosts that no job has unknown (-1), in processes and communicators, and roots 0.
// Returns how many it found.
uint64_t drop_impossible(Trace& trace);

}  // namespace lockstep::model
