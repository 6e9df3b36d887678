// SPDX-License-Identifier: Apache-2.0
// One order for the collectives of a communicator, of which each member's file holds only some, and each
// function is numbered by itself. Operations of one function keep the order of their numbers; functions are
// merged by the earliest time at which any member's operation was known to have ended. What nobody kept has
// its place left free.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::readers::common {

class CallOrder {
 public:
  // A member had ended operation `seq` of the function by then.
  void add(std::string_view func, uint32_t seq, int64_t ended_ns);
  // Once, when everything is added. False: numbers are so far apart that no place is left free for what is
  // missing.
  bool finish();
  // The place of an operation that was added, from 0.
  uint32_t index(std::string_view func, uint32_t seq) const;

 private:
  struct Operation {
    uint32_t seq, index;
    int64_t ended_ns;
  };
  using Function = std::vector<Operation>;
  static void sort(Function& function);

  std::map<std::string, Function, std::less<>> functions_;
};

// Puts operations into the order of their places, which `key()` gives, and keeps the first of each place.
// Returns how many were dropped.
template <class Placed>
uint64_t sort_by_place(std::vector<Placed>& placed) {
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.key() < b.key(); });
  const auto repeated = std::unique(placed.begin(), placed.end(),
                                    [](const Placed& a, const Placed& b) { return a.key() == b.key(); });
  const auto dropped = static_cast<uint64_t>(placed.end() - repeated);
  placed.erase(repeated, placed.end());
  return dropped;
}

}  // namespace lockstep::readers::common
