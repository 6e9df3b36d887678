// SPDX-License-Identifier: Apache-2.0
// When the operations ended that a process called before: what one that arrives later may have waited for.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace lockstep::analysis::straggler {

// Of an operation that has not ended.
inline constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

// `end` where it is known, else kNoEnd.
inline int64_t known_end(int64_t end, int64_t arrival) { return end > 0 ? std::max(end, arrival) : kNoEnd; }

class Ends {
 public:
  // ns; 0: none.
  int64_t latest_until(int64_t time) const {
    int64_t latest = evicted_ <= time ? evicted_ : 0;
    for (int64_t end : recent_) latest = std::max(latest, end <= time ? end : 0);
    return latest;
  }

  // The earliest end gives way: it is the one that every later arrival has behind it. A group's transfers
  // share one.
  void add(int64_t end) {
    if (std::find(recent_.begin(), recent_.end(), end) != recent_.end()) return;
    int64_t& earliest = *std::min_element(recent_.begin(), recent_.end());
    evicted_ = std::max(evicted_, std::min(earliest, end));
    earliest = std::max(earliest, end);
  }

 private:
  static constexpr size_t kOutstanding = 8;  // ends that are looked at one by one
  std::array<int64_t, kOutstanding> recent_{};
  int64_t evicted_ = 0;
};

}  // namespace lockstep::analysis::straggler
