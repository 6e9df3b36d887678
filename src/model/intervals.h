// SPDX-License-Identifier: Apache-2.0
// Sets of instants, as intervals [begin, end) in ns. Where a union is asked for, intervals are in order and
// apart.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/column_memory.h"

namespace lockstep::model {

struct Interval {
  int64_t begin = 0, end = 0;
  bool operator==(const Interval&) const = default;
};
using Intervals = PassingColumn<Interval>;

// The same instants as a union. Empty and reversed intervals are none. Takes any order; costs a sort.
Intervals union_of(Intervals intervals);
// What is in both of two unions, as a union, in one pass over both.
Intervals common_to(const Intervals& a, const Intervals& b);
// How much of a union lies between each two of ascending instants: one number fewer than instants.
std::vector<int64_t> covered_between(const Intervals& all, std::span<const int64_t> instants);

// How much of a union lies within an interval, for many of them: each costs two binary searches. The union
// has to outlive the Cover.
class Cover {
 public:
  explicit Cover(const Intervals& all);
  int64_t within(const Interval& interval) const;

 private:
  int64_t before(int64_t ns) const;
  const Intervals& all_;
  PassingColumn<int64_t> before_;  // by interval: ns of those before it
};

}  // namespace lockstep::model
