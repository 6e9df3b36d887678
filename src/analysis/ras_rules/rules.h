// SPDX-License-Identifier: Apache-2.0
// The rules that rules.def names: what one communicator of the last snapshot shows, if anything.
#pragma once
#include <optional>

#include "analysis/ras_rules/view.h"

namespace lockstep::analysis::ras_rules {

#define RULE(function, ...) std::optional<Case> function(const View& view, const Comm& comm);
#include "analysis/ras_rules/rules.def"
#undef RULE

}  // namespace lockstep::analysis::ras_rules
