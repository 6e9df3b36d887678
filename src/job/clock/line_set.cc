// SPDX-License-Identifier: Apache-2.0
// Keeps the set of lines that satisfy lower and upper bounds, as two convex hulls. Any offset that a clock
// with constant rate can have is the value of such a line, so the highest and lowest of them at a time are
// the proven interval. A least-squares line would give one number and no proof.
#include "job/clock/line_set.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "model/host_clock.h"

namespace lockstep::job::clock {
namespace {

constexpr int kSteps = 48;
constexpr double kLimit = model::HostClock::kMaxDrift;

// The largest value of a concave function on [low, high], and where.
template <class Function>
std::pair<double, double> maximum(double low, double high, Function&& function) {
  for (int i = 0; i < kSteps; ++i) {
    // Ternary search: 48 steps narrow the interval to (2/3)^48, 4e-9 of its width.
    double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (function(a) < function(b) ? low : high) = function(a) < function(b) ? a : b;
  }
  double at = (low + high) / 2;
  return {function(at), at};
}

}  // namespace

LineSet::LineSet(std::span<const Bound> bounds, double slack) : base_(bounds.empty() ? 0 : bounds.front().t) {
  // Turning away from the side on which the lines run: such a vertex lies behind the chord of its neighbours.
  auto add = [](std::vector<Point>& hull, Point point, double sign) {
    while (hull.size() >= 2) {
      const Point &a = hull[hull.size() - 2], &b = hull.back();
      double turn = (b.t - a.t) * (point.offset - a.offset) - (b.offset - a.offset) * (point.t - a.t);
      if (turn * sign < 0) break;
      hull.pop_back();
    }
    hull.push_back(point);
  };
  for (const Bound& bound : bounds) {
    if (bound.is_lower)
      add(lower_, {bound.t - base_, bound.offset - slack}, 1);
    else
      add(upper_, {bound.t - base_, bound.offset + slack}, -1);
  }
  // With bounds of one side alone every drift has lines, and nothing is proven.
  if (!two_sided()) return;
  double largest;
  std::tie(largest, best_) = maximum(-kLimit, kLimit, [this](double drift) { return margin(drift); });
  empty_ = largest < 0;
  if (empty_) return;
  least_ = edge(-kLimit);
  most_ = edge(kLimit);
}

double LineSet::floor(double drift) const {
  double highest = -std::numeric_limits<double>::infinity();
  for (const Point& p : lower_) highest = std::max(highest, p.offset - drift * p.t);
  return highest;
}

double LineSet::ceiling(double drift) const {
  double lowest = std::numeric_limits<double>::infinity();
  for (const Point& p : upper_) lowest = std::min(lowest, p.offset - drift * p.t);
  return lowest;
}

// The drift nearest to `limit` that has lines, from outside: a little more than there are.
double LineSet::edge(double limit) const {
  if (margin(limit) >= 0) return limit;
  double inside = best_, outside = limit;
  for (int i = 0; i < kSteps; ++i) {
    double middle = (inside + outside) / 2;
    (margin(middle) >= 0 ? inside : outside) = middle;
  }
  return outside;
}

double LineSet::low(double t) const {
  return -maximum(least_, most_, [&](double drift) { return -(floor(drift) + drift * (t - base_)); }).first;
}

double LineSet::high(double t) const {
  return maximum(least_, most_, [&](double drift) { return ceiling(drift) + drift * (t - base_); }).first;
}

}  // namespace lockstep::job::clock
