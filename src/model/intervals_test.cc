// SPDX-License-Identifier: Apache-2.0
#include "model/intervals.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace lockstep::model {
namespace {

constexpr int64_t kEnd = 200;
using Instants = std::array<bool, kEnd>;

Instants instants_of(const Intervals& intervals) {
  Instants out{};
  for (const Interval& interval : intervals) {
    for (int64_t ns = interval.begin; ns < interval.end; ++ns) out[static_cast<size_t>(ns)] = true;
  }
  return out;
}

Intervals random_intervals(std::mt19937& random) {
  Intervals out;
  for (size_t n = random() % 12; n > 0; --n) {
    const int64_t begin = random() % (kEnd - 40);
    out.push_back({begin, begin + static_cast<int64_t>(random() % 40) - 2});
  }
  return out;
}

void expect_union(const Intervals& intervals) {
  for (size_t i = 0; i < intervals.size(); ++i) {
    EXPECT_LT(intervals[i].begin, intervals[i].end);
    EXPECT_TRUE(i == 0 || intervals[i - 1].end < intervals[i].begin) << "in order and apart";
  }
}

TEST(Intervals, AgreeWithCountingEveryInstant) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const Intervals raw_a = random_intervals(random), raw_b = random_intervals(random);
    const Intervals a = union_of(raw_a), b = union_of(raw_b), both = common_to(a, b);
    const Instants in_a = instants_of(raw_a), in_b = instants_of(raw_b);
    expect_union(a);
    ASSERT_EQ(instants_of(a), in_a);
    const Instants in_both = instants_of(both);
    for (size_t ns = 0; ns < kEnd; ++ns) ASSERT_EQ(in_both[ns], in_a[ns] && in_b[ns]);
    std::vector<int64_t> borders;
    for (int64_t ns = random() % 30; ns < kEnd; ns += 1 + static_cast<int64_t>(random() % 50))
      borders.push_back(ns);
    const std::vector<int64_t> covered = covered_between(a, borders);
    const Cover cover(a);
    ASSERT_EQ(covered.size() + 1, std::max<size_t>(borders.size(), 1));
    for (size_t i = 0; i < covered.size(); ++i) {
      int64_t count = 0;
      for (int64_t ns = borders[i]; ns < borders[i + 1]; ++ns) count += in_a[static_cast<size_t>(ns)];
      ASSERT_EQ(covered[i], count);
      ASSERT_EQ(cover.within({borders[i], borders[i + 1]}), count);
    }
  }
}

TEST(Intervals, AreCoveredOnceBetweenInstants) {
  const Intervals all = union_of({{5, 15}, {8, 22}, {40, 90}, {16, 17}, {40, 40}});
  EXPECT_EQ(all, (Intervals{{5, 22}, {40, 90}}));
  using Parts = std::vector<int64_t>;
  EXPECT_EQ(covered_between(all, Parts{10, 20, 30, 50}), (Parts{10, 2, 10}));
  EXPECT_EQ(covered_between(all, Parts{41, 42, 43, 44}), (Parts{1, 1, 1}));
  EXPECT_EQ(covered_between({}, Parts{10, 20}), (Parts{0}));
}

TEST(Intervals, OfNothingIsNothing) {
  EXPECT_TRUE(union_of({}).empty());
  EXPECT_TRUE(common_to({}, {{1, 2}}).empty());
  EXPECT_TRUE(covered_between({{1, 2}}, {}).empty());
  EXPECT_EQ(Cover({}).within({0, 9}), 0);
  EXPECT_EQ(Cover(union_of({{1, 5}})).within({4, 2}), 0) << "reversed";
}

}  // namespace
}  // namespace lockstep::model
