// SPDX-License-Identifier: Apache-2.0
// What the operations of one process were in one minute that are alike: sums and histograms, which stay where
// the operations themselves are too many to keep.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "model/string_pool.h"

namespace lockstep::model {

// How often values came, in quarters of octaves: value v is in bin round(4 log2(v + 1)), to within 9 %.
// Stores hold bins: they never change.
class Bins {
 public:
  void add(double value) {
    const auto bin =
        static_cast<uint8_t>(std::min(std::round(4 * std::log2(std::max(value, 0.0) + 1)), 255.0));
    const auto at = std::lower_bound(counts_.begin(), counts_.end(), std::pair(bin, uint32_t{0}));
    if (at != counts_.end() && at->first == bin)
      ++at->second;
    else
      counts_.insert(at, {bin, 1});
  }
  // Ascending, each bin once.
  const std::vector<std::pair<uint8_t, uint32_t>>& counts() const { return counts_; }

 private:
  std::vector<std::pair<uint8_t, uint32_t>> counts_;
};

struct Rollup {
  // Equal in all its operations. Texts are ids of the job.
  int64_t minute = 0;              // since the Unix epoch, on the reference host's clock
  uint32_t process = 0, comm = 0;  // of the job
  uint8_t kind = 0;                // EventKind
  StringId func = 0, algo = 0, proto = 0;
  uint8_t size_bits = 0;  // of the size S, see operation_size.h: 2^(bits-1) <= S < 2^bits
  auto key() const { return std::tuple(minute, process, comm, kind, func, algo, proto, size_bits); }

  uint64_t ops = 0, bytes = 0;  // bytes: of S
  uint64_t timed = 0;           // operations with GPU times
  int64_t gpu_ns = 0;           // of those
  // Of collectives that were compared with other ranks on aligned clocks, by arrivals.
  uint64_t compared = 0;
  double waited_ns = 0;  // for the last rank
  Bins late_ns{};        // its arrival after the median one; 0 before it
  // Arrivals for whose lateness the rank is to blame, and by more than the clocks' doubt.
  uint64_t late_ops = 0;
  double blamed_ns = 0;
  // Of operations whose bandwidth is known: each counts once, on one of its ranks. busbw = bus_bytes /
  // moving_ns.
  uint64_t moved_ops = 0;
  double bus_bytes = 0, moving_ns = 0;
  Bins busbw_mbps{};  // MB/s
};

}  // namespace lockstep::model
