// SPDX-License-Identifier: Apache-2.0
// How large a figure of a run typically is, and how sure that is: from one value per step, in the order of
// the steps.
//
// Operations of one step are not independent of each other, so a step is one value. Nor are steps that follow
// each other: how long that lasts is taken from the values, and the bootstrap draws whole blocks of steps.
// docs/compare.md has the formulas. Deterministic: equal values and seeds give equal results. No state, any
// thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::analysis::compare {

// Fewer steps prove nothing: with them an interval of 95 % would hold the truth less often than it says.
inline constexpr size_t kLeastSteps = 16;
// Of the steps, at either end: what is rarer than that does not move the typical value.
inline constexpr double kTrimmed = 0.1;
inline constexpr size_t kDraws = 800;

// What values that follow each other have to do with each other.
struct Dependence {
  size_t block = 1;  // values that the bootstrap keeps together
  double variance =
      0;  // of the mean of many, times their number: larger than theirs where neighbours are alike
  double widening = 1;  // of deviations that the bootstrap draws in such blocks, which fall short of that
};
// `centred`: their mean is 0.
Dependence dependence(std::span<const double> centred);

// The values as far as they count for a trimmed mean: those beyond are moved to where the trimming begins.
struct Trimmed {
  double mean = 0;  // of those between
  std::vector<double>
      influences;  // by value: what it moves the mean by, times their number; they add up to 0
  size_t kept = 0;
};
Trimmed trim(std::span<const float> values);

struct Estimate {
  double value = 0;  // trimmed mean
  size_t steps = 0, block = 1;
  double freedom = 0;             // degrees of freedom of `draws`
  std::vector<float> draws;       // ln(drawn value / value), kDraws of them
  double relative_error() const;  // their standard deviation
};
// Nothing of fewer than kLeastSteps values, or where the typical value is not above 0.
std::optional<Estimate> estimate(std::span<const float> values, uint64_t seed);

struct Ratio {
  double ratio = 1;          // b / a
  double low = 1, high = 1;  // 95 %
  double p = 1;              // of a ratio at least so far from 1 where the truth is 1
};
Ratio ratio(const Estimate& a, const Estimate& b);

// Which of the p values stand when no more than `share` of those that do may be chance (Benjamini and
// Hochberg): the largest that still counts; below 0 if none does.
double largest_discovery(std::vector<double> p, double share);

}  // namespace lockstep::analysis::compare
