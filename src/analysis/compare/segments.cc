// SPDX-License-Identifier: Apache-2.0
// Cuts a series into parts with different levels, to say since when a run is slower. A cut is kept if chance
// would produce one as good in less than a small share of cases, judged with the distribution of Kolmogorov
// for one change and of Kuiper for a level that comes and goes. Outliers are pulled in first: one long step
// is not a level.
#include "analysis/compare/segments.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/estimate.h"

namespace lockstep::analysis::compare {
namespace {

// Each level of cuts gives at most three parts: 27 in all.
constexpr int kDeepest = 3;
// Moves in what stands out of a window around it: a level that changes late is no outlier.
constexpr size_t kWindow = 4;
constexpr double kFar = 4;  // of the median step between neighbours

std::vector<double> without_outliers(std::span<const float> values) {
  std::vector<float> jumps;
  for (size_t i = 1; i < values.size(); ++i) jumps.push_back(std::abs(values[i] - values[i - 1]));
  const auto middle = jumps.begin() + static_cast<ptrdiff_t>(jumps.size() / 2);
  std::nth_element(jumps.begin(), middle, jumps.end());
  const float far = static_cast<float>(kFar) * *middle;
  std::vector<double> out;
  std::vector<float> window;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t begin = i < kWindow ? 0 : i - kWindow, end = std::min(values.size(), i + kWindow + 1);
    window.assign(values.begin() + static_cast<ptrdiff_t>(begin),
                  values.begin() + static_cast<ptrdiff_t>(end));
    const auto at = window.begin() + static_cast<ptrdiff_t>(window.size() / 2);
    std::nth_element(window.begin(), at, window.end());
    out.push_back(static_cast<double>(std::clamp(values[i], *at - far, *at + far)));
  }
  return out;
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// What is left when each part's own level is taken off: else the changes themselves would count as noise.
double noise(std::span<const double> values, std::span<const size_t> cuts) {
  std::vector<double> rest(values.begin(), values.end());
  size_t begin = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const size_t end = i < cuts.size() ? cuts[i] : values.size();
    const double mean = mean_of(values.subspan(begin, end - begin));
    for (; begin < end; ++begin) rest[begin] -= mean;
  }
  return dependence(rest).variance * static_cast<double>(values.size());
}

bool by_chance(double (*chance)(double), double sums, double noise) {
  return noise > 0 && chance(sums / std::sqrt(noise)) > kCutByChance;
}

// Where two levels fit better than one by more than chance; or where a level comes and goes.
std::vector<size_t> cuts(std::span<const double> values) {
  const size_t n = values.size();
  if (n < 2 * kLeastPart) return {};
  const double mean = mean_of(values);
  double sum = 0, best = 0, best_sum = 0, high = 0, low = 0;
  size_t at = 0, high_at = 0, low_at = 0;
  for (size_t i = 1; i <= n - kLeastPart; ++i) {
    sum += values[i - 1] - mean;
    if (i < kLeastPart) continue;
    // How much better two means fit than one, up to a constant factor.
    const double gain = sum * sum / (static_cast<double>(i) * static_cast<double>(n - i));
    if (gain > best) {
      best = gain;
      best_sum = std::abs(sum);
      at = i;
    }
    if (sum > high) {
      high = sum;
      high_at = i;
    }
    if (sum < low) {
      low = sum;
      low_at = i;
    }
  }
  if (at == 0) return {};
  if (const size_t one[] = {at}; !by_chance(kolmogorov, best_sum, noise(values, one))) return {at};
  // A level that comes and goes leaves the sum highest at one end of it and lowest at the other.
  const size_t two[] = {std::min(low_at, high_at), std::max(low_at, high_at)};
  if (two[0] == 0 || two[1] - two[0] < kLeastPart) return {};
  if (by_chance(kuiper, high - low, noise(values, two))) return {};
  return {two[0], two[1]};
}

void split(std::span<const double> values, size_t begin, size_t end, int depth, std::vector<Part>& out) {
  const auto of = values.subspan(begin, end - begin);
  const std::vector<size_t> at = depth < kDeepest ? cuts(of) : std::vector<size_t>();
  if (at.empty()) {
    out.push_back({begin, end, mean_of(of)});
    return;
  }
  size_t from = begin;
  for (size_t cut : at) {
    split(values, from, begin + cut, depth + 1, out);
    from = begin + cut;
  }
  split(values, from, end, depth + 1, out);
}

}  // namespace

double kolmogorov(double x) {
  // Near 0 the series converges slowly, and the chance is 1 to many digits.
  if (x < 0.2) return 1;
  double sum = 0;
  for (int k = 1; k <= 20; ++k) sum += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * x * x);
  return std::clamp(sum, 0.0, 1.0);
}

double kuiper(double x) {
  if (x < 0.4) return 1;
  double sum = 0;
  for (int k = 1; k <= 20; ++k) {
    const double square = x * x * k * k;
    sum += 2 * (4 * square - 1) * std::exp(-2 * square);
  }
  return std::clamp(sum, 0.0, 1.0);
}

std::vector<Part> parts(std::span<const float> values) {
  std::vector<Part> out;
  if (values.size() < 2) return {{0, values.size(), values.empty() ? 0 : static_cast<double>(values[0])}};
  split(without_outliers(values), 0, values.size(), 0, out);
  return out;
}

}  // namespace lockstep::analysis::compare
