// SPDX-License-Identifier: Apache-2.0
// Where a figure changed within a run: parts of the run in which it keeps its level, by sums of deviations
// from the mean (CUSUM). A step counts as in estimate.h: outliers are moved in, and neighbours that are alike
// make a change less sure.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::analysis::compare {

// No part is shorter.
inline constexpr size_t kLeastPart = 8;
// A level that goes on as before is cut no more often than this.
inline constexpr double kCutByChance = 0.001;

struct Part {
  size_t begin = 0, end = 0;  // of the values
  double mean = 0;            // without outliers
};
// At least one, in order; together all of the values. No more than 27.
std::vector<Part> parts(std::span<const float> values);

// That the largest sum of deviations, over its standard deviation, is at least `x` where nothing changes; and
// that the largest and the smallest are so far apart.
double kolmogorov(double x);
double kuiper(double x);

}  // namespace lockstep::analysis::compare
