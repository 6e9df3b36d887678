// SPDX-License-Identifier: Apache-2.0
// What a diagnosis found, as a store keeps it.
#pragma once
#include <vector>

#include "store/fleet.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::cli::push {

// In their order. `job`: the evidence whose operations are stored, so that a finding about one of its
// communicators can name it.
std::vector<store::FleetFinding> fleet_findings(const verdict::DiagnosedRun& run,
                                                const verdict::Evidence& job);

}  // namespace lockstep::cli::push
