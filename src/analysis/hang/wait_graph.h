// SPDX-License-Identifier: Apache-2.0
// Follows who waits for whom to where it ends. Edges run from a waiting rank to its block and from the block
// to the ranks it waits for. A rank that waits for nobody itself is a root; so is one that is gone. Ranks
// that wait for each other are a cycle.
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/hang/blocks.h"

namespace lockstep::analysis::hang {

struct Root {
  enum class Kind : uint8_t {
    kNotHere,
    kUnseen,  // what is known of it is too old to say whether it came
    kGone,
    kDifferent,
    kStuck,
    kAbsent,
    kUnknown,  // its record has gaps
  } kind = Kind::kNotHere;
  uint32_t block = 0;               // the longest wait for it
  std::vector<uint32_t> actors;     // ascending; empty: nobody to name
  size_t waiting = 0;               // ranks that wait for it, also through others
  std::vector<uint32_t> followers;  // of those, who call nothing more, as they may stand behind it
};

// One rank after the other: `actors[i]` waits in `blocks[i]` for `actors[i + 1]`, the last for the first.
struct Cycle {
  std::vector<uint32_t> actors, blocks;
  size_t waiting = 0;
};

struct Culprits {
  std::vector<Root> roots;
  std::vector<Cycle> cycles;
};
Culprits find_culprits(const JobState& job_state, const std::vector<Block>& blocks);

}  // namespace lockstep::analysis::hang
