// SPDX-License-Identifier: Apache-2.0
// Where one clock stands against the reference, from one-sided bounds of the offset at instants of that
// clock.
//
//   offset                 x  at most
//     |          x                        x        the lines that pass under every x and over
//     |   x   ............................x..      every o are what the clock can have done; per time, the
//     |  .....o............x..........o            highest and the lowest are the proven interval
//     |  o             o              at least
//     +------------------------------------------ time
//
// A line holds within a window: the rate is taken to be steady to kWander over kWindowNs, and the bounds are
// loosened and the result widened by what that leaves open. A span that no line satisfies is cut where the
// bounds before and after it part; between the two the interval covers both sides.
//
// Memory is bounded: time is divided into buckets, and of each the tightest bound of either side is kept,
// which only loosens the result.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/host_clock.h"

namespace lockstep::job::clock {

class OffsetFit {
 public:
  static constexpr int64_t kWindowNs = 10'000'000'000;
  static constexpr double kWander = 0.1e-6;

  // `from_ns`..`until_ns`: the times of most bounds; those outside count to the nearest bucket.
  OffsetFit(int64_t from_ns, int64_t until_ns, size_t max_buckets);

  // offset(at_ns) >= offset, offset(at_ns) <= offset. Times in (0, 2^62).
  void at_least(int64_t at_ns, int64_t offset);
  void at_most(int64_t at_ns, int64_t offset);

  struct Contradiction {
    int64_t from_ns, until_ns;
    int64_t moved_ns;       // offset after it - offset before it
    int64_t half_width_ns;  // of moved_ns
  };
  struct Proven {
    std::vector<model::HostClock::Knot> knots;  // empty: a side is missing
    std::vector<Contradiction> contradictions;
  };
  Proven fit() const;

 private:
  struct Bucket {
    int64_t low_at = 0, low = INT64_MIN, high_at = 0, high = INT64_MAX;
  };
  Bucket& bucket(int64_t at_ns);

  int64_t from_ns_, bucket_ns_, window_ns_;
  size_t buckets_;
  std::vector<Bucket> kept_;  // empty until the first bound
};

}  // namespace lockstep::job::clock
