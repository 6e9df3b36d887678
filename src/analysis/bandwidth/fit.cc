// SPDX-License-Identifier: Apache-2.0
// Two sizes lie on a line whatever they measure, so a fit takes three; and where time does not grow with size
// there is no bandwidth to report, only a start-up time that more data would not change.
#include <cmath>

#include "analysis/bandwidth/rates.h"

namespace lockstep::analysis::bandwidth {

// Least squares of relative errors: sizes span nine orders of magnitude, and so do times.
bool fit(const std::vector<Point>& points, Fit& out) {
  if (points.size() < 3) return false;
  double weight = 0, x = 0, y = 0;
  for (const Point& p : points) {
    const double w = p.ops / (p.time_ns * p.time_ns);
    weight += w;
    x += w * p.bytes;
    y += w * p.time_ns;
  }
  x /= weight;
  y /= weight;
  double xx = 0, xy = 0;
  for (const Point& p : points) {
    const double w = p.ops / (p.time_ns * p.time_ns);
    xx += w * (p.bytes - x) * (p.bytes - x);
    xy += w * (p.bytes - x) * (p.time_ns - y);
  }
  const double slope = xy / xx;
  if (!(xx > 0) || !(slope > 0)) return false;
  double residuals = 0;
  for (const Point& p : points) {
    const double off = p.time_ns - y - slope * (p.bytes - x);
    residuals += p.ops / (p.time_ns * p.time_ns) * off * off;
  }
  const double variance = residuals / static_cast<double>(points.size() - 2);
  const double slope_error = 1.96 * std::sqrt(variance / xx);
  out.sizes = static_cast<uint32_t>(points.size());
  out.alpha_ns = y - slope * x;
  out.alpha_error_ns = 1.96 * std::sqrt(variance * (1 / weight + x * x / xx));
  out.beta_gbps = 1 / slope;
  out.beta_low_gbps = 1 / (slope + slope_error);
  out.beta_high_gbps = slope > slope_error ? 1 / (slope - slope_error) : 0;
  return true;
}

}  // namespace lockstep::analysis::bandwidth
