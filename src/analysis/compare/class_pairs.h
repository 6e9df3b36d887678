// SPDX-License-Identifier: Apache-2.0
// Which class of operations of one run is which of another: the same function and size, in communicators that
// are one pair, by times that were taken in the same way.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "analysis/compare/comm_pairs.h"
#include "analysis/compare/samples.h"

namespace lockstep::analysis::compare {

// Keys of their own run. Classes of communicators that do not compare are in none of these.
struct ClassPairs {
  std::vector<std::pair<ClassKey, ClassKey>> same;         // of a, of b
  std::vector<std::pair<ClassKey, ClassKey>> other_clock;  // but for how their times were taken
  std::vector<ClassKey> only_a, only_b;                    // the other run lacks them in any time
};
// `resized`: also those of communicators with different numbers of ranks.
ClassPairs pair_classes(const Classes& a, const Classes& b, std::span<const CommPair> comms, bool resized);

}  // namespace lockstep::analysis::compare
