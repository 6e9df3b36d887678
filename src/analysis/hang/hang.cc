// SPDX-License-Identifier: Apache-2.0
#include "analysis/analysis.h"

namespace lockstep::analysis::hang {
namespace {

void run(const model::Job&, std::vector<Finding>&) {}

}  // namespace

extern const Analysis kAnalysis = {.name = "hang", .question = "Who keeps the job from going on?", .run = run};

}  // namespace lockstep::analysis::hang
