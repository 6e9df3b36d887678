// SPDX-License-Identifier: Apache-2.0
// A rank that becomes slow early in a run is slow in most of its steps, so the median of them all is its slow
// level and hides the change. The step that best splits the series in two is where the sum of deviations from
// the mean is furthest from zero (CUSUM), weighed by how much a split there would scatter by chance. Single
// long steps must not decide that, so values are cut at the deciles first. There are two levels where three
// quarters of the values on one side lie beyond three quarters of those on the other: noise, a drift within
// the noise and a few pauses do not do that.
#include "analysis/straggler/cost/usual_level.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/straggler/cost/culprits.h"

namespace lockstep::analysis::straggler {
namespace {

float quantile(std::vector<float> values, double share) {
  const auto at = values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// How many values come before the change, if there is one; `least` at least, and as many after it.
size_t best_split(const std::vector<float>& values, size_t least) {
  const double low = static_cast<double>(quantile(values, 0.1));
  const double high = static_cast<double>(quantile(values, 0.9));
  const auto cut = [&](float value) { return std::clamp(static_cast<double>(value), low, high); };
  double mean = 0;
  for (float value : values) mean += cut(value) / static_cast<double>(values.size());
  double sum = 0, most = 0;
  size_t best = least;
  for (size_t before = 1; before + least <= values.size(); ++before) {
    sum += cut(values[before - 1]) - mean;
    const double scatter =
        std::sqrt(static_cast<double>(before) * static_cast<double>(values.size() - before));
    if (before < least || std::abs(sum) <= most * scatter) continue;
    most = std::abs(sum) / scatter;
    best = before;
  }
  return best;
}

}  // namespace

float usual_level(std::span<const float> values, size_t from) {
  std::vector<float> present;
  for (size_t i = from; i < values.size(); ++i) {
    if (!std::isnan(values[i])) present.push_back(values[i]);
  }
  if (present.empty()) return 0;
  const size_t least = std::max(3 * kLeastSteps, present.size() / 20);
  if (present.size() >= 2 * least) {
    const auto split = present.begin() + static_cast<ptrdiff_t>(best_split(present, least));
    const std::vector<float> before(present.begin(), split), after(split, present.end());
    const auto is_below = [](const std::vector<float>& a, const std::vector<float>& b) {
      return quantile(a, 0.75) < quantile(b, 0.25);
    };
    if (is_below(before, after)) return quantile(before, 0.5);
    if (is_below(after, before)) return quantile(after, 0.5);
  }
  return quantile(std::move(present), 0.5);
}

}  // namespace lockstep::analysis::straggler
