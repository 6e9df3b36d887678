// SPDX-License-Identifier: Apache-2.0
// What the library that AMD's runtime loads has counted, as a trace says it: by a mark of its process, which
// begins so and goes on with "label=count" between semicolons, in the order of format/hsa_counters.def, and
// the error of its GPU clocks.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::model {

inline constexpr std::string_view kHsaCountersMark = "AMD kernels: ";
inline constexpr std::string_view kClockErrorCounter = "GPU clock error, ns";

// Of a mark's name; none if it is not one of those.
inline std::vector<std::pair<std::string, uint64_t>> hsa_counters_of(std::string_view mark) {
  std::vector<std::pair<std::string, uint64_t>> counters;
  if (!mark.starts_with(kHsaCountersMark)) return counters;
  mark.remove_prefix(kHsaCountersMark.size());
  while (!mark.empty()) {
    const std::string_view piece = mark.substr(0, mark.find("; "));
    const size_t equals = piece.find('=');
    uint64_t count = 0;
    if (equals != std::string_view::npos) {
      std::from_chars(piece.data() + equals + 1, piece.data() + piece.size(), count);
      counters.emplace_back(piece.substr(0, equals), count);
    }
    mark.remove_prefix(std::min(mark.size(), piece.size() + 2));
  }
  return counters;
}

}  // namespace lockstep::model
