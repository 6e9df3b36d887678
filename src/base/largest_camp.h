// SPDX-License-Identifier: Apache-2.0
// Who differs from all others: what most say counts as right.
#pragma once

namespace lockstep {

// Of a map of camps, each with its members, the one with the most; null if another has as many, since then
// any of them may be wrong.
template <class Camps>
const typename Camps::value_type* largest_camp(const Camps& camps) {
  const typename Camps::value_type* largest = nullptr;
  bool is_only = false;
  for (const auto& camp : camps) {
    if (largest != nullptr && camp.second.size() < largest->second.size()) continue;
    is_only = largest == nullptr || camp.second.size() > largest->second.size();
    largest = &camp;
  }
  return is_only ? largest : nullptr;
}

}  // namespace lockstep
