// SPDX-License-Identifier: Apache-2.0
#include "job/clock/line_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "model/host_clock.h"

namespace lockstep::job::clock {
namespace {

constexpr double kLimit = model::HostClock::kMaxDrift;

struct Extremes {
  double low = INFINITY, high = -INFINITY;
};

// Of all lines through the bounds at t, by trying each drift at which two bounds or a limit meet: an extreme
// is at one of them.
Extremes tried(const std::vector<Bound>& bounds, double slack, double t) {
  std::vector<double> drifts = {-kLimit, kLimit};
  auto edge = [&](const Bound& b) { return b.is_lower ? b.offset - slack : b.offset + slack; };
  for (const Bound& a : bounds) {
    for (const Bound& b : bounds)
      if (b.t > a.t) drifts.push_back((edge(b) - edge(a)) / (b.t - a.t));
  }
  Extremes out;
  for (const double drift : drifts) {
    if (std::abs(drift) > kLimit) continue;
    double floor = -INFINITY, ceiling = INFINITY;
    for (const Bound& b : bounds) {
      const double at = edge(b) - drift * b.t;
      b.is_lower ? floor = std::max(floor, at) : ceiling = std::min(ceiling, at);
    }
    if (floor > ceiling + 1e-6) continue;
    out.low = std::min(out.low, floor + drift * t);
    out.high = std::max(out.high, ceiling + drift * t);
  }
  return out;
}

TEST(LineSet, ItsExtremesAreThoseOfAllLines) {
  std::mt19937_64 random(11);
  auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  int full = 0, empty = 0;
  for (int round = 0; round < 400; ++round) {
    const double drift = between(-kLimit, kLimit) * 1.2, slack = round % 3, first = between(0, 1e9);
    std::vector<Bound> bounds;
    for (double t = first; bounds.size() < 12; t += between(1e3, 2e7)) {
      const bool is_lower = random() % 2 == 0;
      const double away = between(round % 4 == 0 ? -200 : 0, 3000);
      bounds.push_back({t, 1e6 + drift * (t - first) + (is_lower ? -away : away), is_lower});
    }
    const LineSet lines(bounds, slack);
    if (!lines.two_sided()) continue;
    const Extremes middle = tried(bounds, slack, first);
    ASSERT_EQ(lines.empty(), middle.low > middle.high) << round;
    ++(lines.empty() ? empty : full);
    if (lines.empty()) continue;
    for (const double t : {first, bounds[5].t, bounds.back().t, bounds.back().t + 1e8}) {
      const Extremes all = tried(bounds, slack, t);
      EXPECT_NEAR(lines.low(t), all.low, 0.01) << round;
      EXPECT_NEAR(lines.high(t), all.high, 0.01) << round;
    }
  }
  EXPECT_GT(full, 100);
  EXPECT_GT(empty, 20);
}

TEST(LineSet, OneSideIsNeverEmpty) {
  const std::vector<Bound> bounds = {{0, 10, true}, {1, 1e9, true}};
  const LineSet lines(bounds, 0);
  EXPECT_FALSE(lines.two_sided());
  EXPECT_FALSE(lines.empty());
}

TEST(LineSet, BoundsThatTouchLeaveALineAndSlackHelpsOthers) {
  const std::vector<Bound> touching = {{0, 100, true}, {0, 100, false}},
                           crossing = {{0, 104, true}, {0, 100, false}};
  EXPECT_FALSE(LineSet(touching, 0).empty());
  EXPECT_TRUE(LineSet(crossing, 1.9).empty());
  EXPECT_FALSE(LineSet(crossing, 2.1).empty());
}

}  // namespace
}  // namespace lockstep::job::clock
