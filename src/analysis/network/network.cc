// SPDX-License-Identifier: Apache-2.0
#include "analysis/analysis.h"

namespace lockstep::analysis::network {
namespace {

void run(const model::Job&, std::vector<Finding>&) {}

}  // namespace

extern const Analysis kAnalysis = {.name = "network", .question = "Which pair, NIC or rail holds the transfers up?", .run = run};

}  // namespace lockstep::analysis::network
