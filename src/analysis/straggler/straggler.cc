// SPDX-License-Identifier: Apache-2.0
#include "analysis/analysis.h"

namespace lockstep::analysis::straggler {
namespace {

void run(const model::Job&, std::vector<Finding>&) {}

}  // namespace

extern const Analysis kAnalysis = {.name = "straggler", .question = "Which rank is late, and since when?", .run = run};

}  // namespace lockstep::analysis::straggler
