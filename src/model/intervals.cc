// SPDX-License-Identifier: Apache-2.0
// Unions are kept in order and apart, so that everything after the one sort is a single pass or a binary
// search: a process has millions of kernels, and steps ask for the same unions again and again.
#include "model/intervals.h"

#include <algorithm>

namespace lockstep::model {

Intervals union_of(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Interval& interval : intervals) {
    if (interval.begin >= interval.end) continue;
    // Intervals that merely touch become one, so that those of a union stay apart.
    if (kept > 0 && interval.begin <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, interval.end);
    else
      intervals[kept++] = interval;
  }
  intervals.resize(kept);
  return intervals;
}

Intervals common_to(const Intervals& a, const Intervals& b) {
  Intervals common;
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    const Interval both{std::max(x->begin, y->begin), std::min(x->end, y->end)};
    if (both.begin < both.end) common.push_back(both);
    if (x->end < y->end)
      ++x;
    else
      ++y;
  }
  return common;
}

std::vector<int64_t> covered_between(const Intervals& all, std::span<const int64_t> instants) {
  std::vector<int64_t> covered(instants.empty() ? 0 : instants.size() - 1);
  // An interval is cut at each instant within it, and `part` never goes back: one pass over both.
  size_t part = 0;
  for (Interval left : all) {
    for (; left.begin < left.end && part < covered.size(); ++part) {
      const int64_t from = std::max(left.begin, instants[part]), to = std::min(left.end, instants[part + 1]);
      if (to > from) covered[part] += to - from;
      left.begin = std::max(left.begin, to);
      if (left.end < instants[part + 1]) break;
    }
  }
  return covered;
}

Cover::Cover(const Intervals& all) : all_(all) {
  before_.reserve(all.size() + 1);
  int64_t sum = 0;
  for (const Interval& interval : all) {
    before_.push_back(sum);
    sum += interval.end - interval.begin;
  }
  before_.push_back(sum);
}

int64_t Cover::before(int64_t ns) const {
  // Sums over whole intervals are ready. Only the one that holds the instant counts in part.
  const auto at = std::partition_point(all_.begin(), all_.end(),
                                       [ns](const Interval& interval) { return interval.end <= ns; });
  const int64_t whole = before_[static_cast<size_t>(at - all_.begin())];
  return at == all_.end() || at->begin >= ns ? whole : whole + ns - at->begin;
}

int64_t Cover::within(const Interval& interval) const {
  return interval.begin < interval.end ? before(interval.end) - before(interval.begin) : 0;
}

}  // namespace lockstep::model
