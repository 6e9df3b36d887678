// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the parser of stacks, and asks the rules.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "analysis/stack_rules/stack_rules.h"
#include "readers/stacks/read_stacks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace stacks = lockstep::readers::stacks;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  stacks::StacksModel model;
  stacks::parse_stacks(text, "stack_rank_1", model);
  if (!model.stacks.empty() && !stacks::has_stack(text)) std::abort();
  stacks::parse_stacks(text.substr(0, size / 2), "a", model);
  for (const auto& finding : lockstep::analysis::stack_rules::judge(model)) {
    if (finding.statement.empty() || finding.advice.empty()) std::abort();
  }
  return 0;
}
