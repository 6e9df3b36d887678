// SPDX-License-Identifier: Apache-2.0
// Losses for people: folded over processes, the largest first, and each with what it means. Every report begins so.
#pragma once
#include <string>

#include "cli/run_overview.h"

namespace lockstep::cli {

// "Nothing was lost." or a heading and a table.
std::string loss_report(const RunOverview& run);
// One line for each folded loss, without heading; none if nothing was lost.
std::vector<std::string> loss_sentences(const RunOverview& run);

}  // namespace lockstep::cli
