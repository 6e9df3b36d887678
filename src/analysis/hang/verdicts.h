// SPDX-License-Identifier: Apache-2.0
// Findings from where the wait-for graph ends. One finding for ranks that are missing in the same way.
#pragma once
#include <vector>

#include "analysis/finding.h"
#include "analysis/hang/wait_graph.h"

namespace lockstep::analysis::hang {

void add_verdicts(const Scene& scene, const std::vector<Block>& blocks, const Culprits& culprits,
                  std::vector<Finding>& findings);

// stuck_verdict.cc: all have joined and it does not move. From proxy steps where there are any.
Finding stuck_verdict(const Scene& scene, const Block& block, const Root& root);

// evidence.cc: what could not be told, where nothing else was found.
void add_missing_evidence(const Scene& scene, const std::vector<Block>& blocks,
                          std::vector<Finding>& findings);

}  // namespace lockstep::analysis::hang
