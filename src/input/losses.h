// SPDX-License-Identifier: Apache-2.0
// Losses for people: folded over processes, the largest first, and each with what it means. Every report
// begins with them.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "input/run_overview.h"

namespace lockstep::input {

struct FoldedLoss {
  std::string stage, kind, detail;
  uint64_t count = 0;
  std::set<int64_t> processes;  // positions in RunOverview::processes; empty: the whole run
};
// What concerns the whole run first, then the largest.
std::vector<FoldedLoss> fold_losses(const RunOverview& run);
// "1,234 x events dropped"; of a detail that goes on from its count "12 of 15 chunks cannot be read"
std::string loss_words(const FoldedLoss& loss);

// As model::Who::label() words it, "4 processes", "run": whose it is.
std::string loss_place(const FoldedLoss& loss, const RunOverview& run);
// One line for each folded loss, without heading; none if nothing was lost.
std::vector<std::string> loss_sentences(const RunOverview& run);

// 0, or 3 where something that was named is left out of what was made, as it cannot be read or is there
// already.
int exit_of_losses(const RunOverview& run);

}  // namespace lockstep::input
