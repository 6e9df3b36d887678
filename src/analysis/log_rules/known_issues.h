// SPDX-License-Identifier: Apache-2.0
// What known_issues.def lists, as data.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::analysis::log_rules {

struct KnownIssue {
  bool is_wait;                  // else a warning
  int32_t first, fixed;          // releases, as ncclGetVersion gives them; first 0: not known
  std::string_view words, also;  // of the warning, which may need others as well; or the function
  std::string_view what, workaround, source;
};
std::span<const KnownIssue> known_issue_list();

}  // namespace lockstep::analysis::log_rules
