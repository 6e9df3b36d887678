// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

namespace lockstep::analysis::straggler {

// The lower median: of two, the better one. Disturbs the order; not of nothing.
template <class Value>
Value lower_median(std::span<Value> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The upper median: of two, the worse one.
template <class Value>
Value upper_median(std::span<Value> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace lockstep::analysis::straggler
