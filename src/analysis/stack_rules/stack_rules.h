// SPDX-License-Identifier: Apache-2.0
// Ranks grouped by where their main threads are: who is elsewhere than those who wait.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "readers/stacks/stacks_model.h"

namespace lockstep::analysis::stack_rules {

// docs/findings.md has the ids. Of a rank that is there several times the last stack counts.
std::vector<Finding> judge(const readers::stacks::StacksModel& model);

// Of the ranks that are mentioned; a name may be empty.
std::map<int32_t, std::string> hosts(const readers::stacks::StacksModel& model);

}  // namespace lockstep::analysis::stack_rules
