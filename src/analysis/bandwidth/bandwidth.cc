// SPDX-License-Identifier: Apache-2.0
#include "analysis/analysis.h"

namespace lockstep::analysis::bandwidth {
namespace {

void run(const model::Job&, std::vector<Finding>&) {}

}  // namespace

extern const Analysis kAnalysis = {.name = "bandwidth", .question = "Which link or communicator moves less than it could?", .run = run};

}  // namespace lockstep::analysis::bandwidth
