// SPDX-License-Identifier: Apache-2.0
// What is wrong with a host's links, strongest evidence first: a link that is down or degraded; errors that
// rise under traffic; cells slower than their siblings, twice; old counters. Congestion is never a fault of
// the link. What could not be seen is a finding of its own, so that silence is no praise.
#pragma once
#include <vector>

#include "analysis/finding.h"
#include "links/counters.h"
#include "links/judge/others.h"
#include "links/record.h"

namespace lockstep::links {

// `baseline`: an earlier record of the same host, or nullptr.
std::vector<analysis::Finding> judge(const LinksRecord& record, const LinksRecord* baseline);

// Each part by itself.
void judge_state(const Machine& machine, bool under_load, std::vector<analysis::Finding>& findings);
void judge_paths(const Machine& machine, std::vector<analysis::Finding>& findings);
void judge_settings(const Machine& machine, std::vector<analysis::Finding>& findings);
void judge_visibility(const Machine& machine, const GpuFacts& gpus, std::vector<analysis::Finding>& findings);
// Of counters that rose within `seconds`. `host` is who says so.
void judge_increases(const Increases& increases, double seconds, const std::string& host,
                     std::vector<analysis::Finding>& findings);
// Of counters since boot: notes.
void judge_totals(const Counters& counters, const std::string& host,
                  std::vector<analysis::Finding>& findings);
// Cells of GPUs that others use say nothing of their links.
void judge_traffic(const Traffic& traffic, const Traffic* baseline, const Machine& machine,
                   const OthersUse& others, std::vector<analysis::Finding>& findings);

}  // namespace lockstep::links
