// SPDX-License-Identifier: Apache-2.0
// The hosts that a finding names: each once, and none without a name, as in files of other tools.
#pragma once
#include <algorithm>
#include <string_view>

#include "analysis/finding.h"

namespace lockstep::analysis {

inline void add_host(Finding& finding, std::string_view host) {
  if (!host.empty() && std::find(finding.hosts.begin(), finding.hosts.end(), host) == finding.hosts.end())
    finding.hosts.emplace_back(host);
}

}  // namespace lockstep::analysis
