// SPDX-License-Identifier: Apache-2.0
// Where a link is named and no counter and no check of it was given, what would have shown whether it is at
// fault: the commands to run on its host.
#pragma once
#include <vector>

#include "verdict/diagnosed_run.h"

namespace lockstep::verdict {

// After add_link_evidence() and add_link_checks(): what they have said is left alone, as is a finding that
// wants something else.
void add_wanted_checks(const std::vector<Evidence>& evidence, std::vector<analysis::Finding>& findings);

}  // namespace lockstep::verdict
