// SPDX-License-Identifier: Apache-2.0
// What counters of several links show only together, or only against what the job's ranks did: one card of
// every host loses packets; a card is left aside; NVLinks are left aside, or carry others' data.
#pragma once
#include <set>
#include <vector>

#include "verdict/diagnosed_run.h"

namespace lockstep::verdict {

using HostsOfRun = std::vector<const links::HostSamples*>;

// The troubles that a finding takes together are added to `taken`.
std::vector<analysis::Finding> rail_findings(const HostsOfRun& hosts,
                                             std::set<const links::LinkTrouble*>& taken);
std::vector<analysis::Finding> left_aside_findings(const HostsOfRun& hosts,
                                                   const std::vector<Evidence>& evidence);
// Also says so in findings about slow ranks whose GPUs' NVLinks these are.
void add_others_traffic(const HostsOfRun& hosts, const std::vector<Evidence>& evidence,
                        std::vector<analysis::Finding>& findings);

}  // namespace lockstep::verdict
