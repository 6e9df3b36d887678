// SPDX-License-Identifier: Apache-2.0
// All lines offset(t) = c + d t with |d| <= HostClock::kMaxDrift that keep some bounds. Times and offsets are
// ns above bases of the caller's choice.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::job::clock {

struct Bound {
  double t, offset;
  bool is_lower;
};

class LineSet {
 public:
  // Bounds in order of time, each loosened by `slack`.
  LineSet(std::span<const Bound> bounds, double slack);

  bool two_sided() const { return !lower_.empty() && !upper_.empty(); }
  // A one-sided set never is.
  bool empty() const { return empty_; }
  // The lowest and highest line at t. For a set that is two-sided and not empty. low is concave in t and high
  // convex, so straight joints between times bound them.
  double low(double t) const;
  double high(double t) const;

 private:
  struct Point {
    double t, offset;
  };
  // Offsets at base_ that a drift leaves.
  double floor(double drift) const;
  double ceiling(double drift) const;
  double margin(double drift) const { return ceiling(drift) - floor(drift); }
  double edge(double limit) const;

  std::vector<Point> lower_, upper_;  // the vertices of their hulls: no other bound can touch a line
  bool empty_ = false;
  double base_ = 0;  // time from which the points count: small numbers keep their digits
  double best_ = 0, least_ = 0, most_ = 0;  // drifts: with the largest margin, and the range that has lines
};

}  // namespace lockstep::job::clock
