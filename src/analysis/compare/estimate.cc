// SPDX-License-Identifier: Apache-2.0
// Estimates a ratio of two means, with its interval. Steps of a run resemble their neighbours, so an ordinary
// standard error would be several times too small and would call noise a change. The resemblance is measured,
// blocks of that length are drawn again, and the draws are widened where few blocks exist. Trimmed means keep
// single outliers from deciding.
#include "analysis/compare/estimate.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/segments.h"

namespace lockstep::analysis::compare {
namespace {

constexpr double kNormal95 = 1.959964;
// At 1 the variance of the mean would be infinite.
constexpr double kMostCarried = 0.97;
constexpr double kExact = 1e-9;     // relative: what adding up may be off by
constexpr size_t kLeastParts = 12;  // that show how alike neighbours are
// A block is no longer than this part of the values, so that there is something to draw from.
constexpr size_t kLeastBlocks = 5, kManyBlocks = 8, kManyValues = 100;

struct Carried {
  double share = 0;     // of a deviation that is still there at the next value
  double variance = 0;  // of the mean of many, times their number
};

// As if the values were autoregressive of order 1. Few values look less alike than they are (Kendall).
Carried carried(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, square = 0, product = 0;
  for (double value : values) mean += value / n;
  for (size_t i = 0; i < values.size(); ++i) {
    square += (values[i] - mean) * (values[i] - mean);
    if (i + 1 < values.size()) product += (values[i] - mean) * (values[i + 1] - mean);
  }
  if (square <= 0) return {};
  const double seen = product / square;
  const double share = std::clamp(seen + (1 + 3 * seen) / n, 0.0, kMostCarried);
  return {share, square / n * (1 + share) / (1 - share)};
}

// What is slow hides in the noise of single values; means of several show it.
Carried carried_by_parts(std::span<const double> values, size_t length) {
  std::vector<double> means(values.size() / length);
  for (size_t i = 0; i < means.size(); ++i) {
    for (size_t j = 0; j < length; ++j) means[i] += values[i * length + j] / static_cast<double>(length);
  }
  const Carried of = carried(means);
  return {std::pow(of.share, 1.0 / static_cast<double>(length)), of.variance * static_cast<double>(length)};
}

// The length that makes the error of the bootstrap's variance least (Politis and White, 2004).
size_t block_length(double share, size_t n) {
  const double memory = 2 * share / ((1 - share) * (1 - share)), spectrum = (1 + share) / (1 - share);
  const double length = std::cbrt(1.5 * memory * memory / (spectrum * spectrum) * static_cast<double>(n));
  const size_t most = n / (n >= kManyValues ? kManyBlocks : kLeastBlocks);
  return std::clamp<size_t>(static_cast<size_t>(std::ceil(length)), 1, std::max<size_t>(most, 1));
}

// Sums of blocks, which may go round from the last value to the first.
// Going round puts each value into equally many blocks.
class BlockSums {
 public:
  BlockSums(std::span<const double> values, size_t length) : length_(length), until_(values.size() + length) {
    for (size_t i = 0; i + 1 < until_.size(); ++i) until_[i + 1] = until_[i] + values[i % values.size()];
  }
  double at(size_t begin) const { return until_[begin + length_] - until_[begin]; }
  size_t size() const { return until_.size() - length_; }

 private:
  size_t length_;
  std::vector<double> until_;
};

// SplitMix64: any seed is a good one.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  // `n` must be below 2^32. A multiplication instead of a remainder: its bias is n / 2^32.
  size_t below(size_t n) {
    uint64_t bits = (state_ += 0x9e3779b97f4a7c15u);
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return static_cast<size_t>(((bits ^ bits >> 31) >> 32) * n >> 32);
  }

 private:
  uint64_t state_;
};

// Wallace's approximation of Student's distribution by the normal one, exact to three digits from 3 degrees
// on.
double normal_of_student(double t, double freedom) {
  return (8 * freedom + 1) / (8 * freedom + 3) * std::sqrt(freedom * std::log1p(t * t / freedom));
}
double student_of_normal(double z, double freedom) {
  const double scaled = z * (8 * freedom + 3) / (8 * freedom + 1);
  return std::sqrt(freedom * std::expm1(scaled * scaled / freedom));
}

// What is left of influences when the levels that the values go through are taken off. A level that changes
// for good says what the run was like, not how unsure that is.
std::vector<double> around_levels(std::span<const double> influences, std::span<const float> values) {
  std::vector<double> out(influences.begin(), influences.end());
  for (const Part& part : parts(values)) {
    double mean = 0;
    for (size_t i = part.begin; i < part.end; ++i)
      mean += out[i] / static_cast<double>(part.end - part.begin);
    for (size_t i = part.begin; i < part.end; ++i) out[i] -= mean;
  }
  return out;
}

float quantile(std::vector<float>& values, double share) {
  const auto at = values.begin() + std::lround(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

Dependence dependence(std::span<const double> centred) {
  Dependence out;
  const size_t n = centred.size();
  Carried of = carried(centred);
  if (of.variance <= 0) return out;
  const auto length = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(n)) / 1.5));
  if (length > 1 && n / length >= kLeastParts) {
    const Carried slow = carried_by_parts(centred, length);
    if (slow.variance > of.variance) of = {std::max(of.share, slow.share), slow.variance};
  }
  out.block = block_length(of.share, n);
  out.variance = of.variance;
  const BlockSums sums(centred, out.block);
  double drawn = 0;
  for (size_t i = 0; i < sums.size(); ++i) drawn += sums.at(i) * sums.at(i);
  drawn /= static_cast<double>(n * out.block);
  // In small numbers blocks differ less than they should, by the mean that they have in common.
  const double common = static_cast<double>(n) / static_cast<double>(n - out.block);
  out.widening = std::sqrt(std::max(common, drawn > 0 ? of.variance / drawn : common));
  return out;
}

Trimmed trim(std::span<const float> values) {
  const size_t n = values.size();
  const auto cut = static_cast<size_t>(kTrimmed * static_cast<double>(n));
  std::vector<float> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  Trimmed out;
  out.kept = n - 2 * cut;
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    out.influences.push_back(static_cast<double>(std::clamp(values[i], sorted[cut], sorted[n - 1 - cut])));
    sum += out.influences.back();
    if (i >= cut && i < n - cut) out.mean += static_cast<double>(sorted[i]);
  }
  out.mean /= static_cast<double>(out.kept);
  const double common = sum / static_cast<double>(n), least = kExact * std::abs(common);
  for (double& influence : out.influences) {
    influence = (influence - common) * static_cast<double>(n) / static_cast<double>(out.kept);
    if (std::abs(influence) < least) influence = 0;
  }
  return out;
}

double Estimate::relative_error() const {
  double squares = 0;
  for (float draw : draws) squares += static_cast<double>(draw) * static_cast<double>(draw);
  return std::sqrt(squares / static_cast<double>(draws.size()));
}

std::optional<Estimate> estimate(std::span<const float> values, uint64_t seed) {
  if (values.size() < kLeastSteps) return std::nullopt;
  const Trimmed of = trim(values);
  if (!(of.mean > 0) || !std::isfinite(of.mean)) return std::nullopt;
  const std::vector<double> noise = around_levels(of.influences, values);
  const Dependence depends = dependence(noise);
  Estimate out;
  out.value = of.mean;
  out.steps = values.size();
  out.block = depends.block;
  // A block's length of overlapping blocks says half as much again as separate ones would.
  const double independent = static_cast<double>(of.kept) / static_cast<double>(depends.block);
  out.freedom = std::max(2.0, (depends.block == 1 ? 1 : 1.5) * independent - 1);
  const BlockSums sums(noise, depends.block);
  const size_t blocks = values.size() / depends.block;
  const auto drawn = static_cast<double>(blocks * depends.block);
  const double scale =
      depends.widening * std::sqrt(drawn / static_cast<double>(values.size())) / drawn / of.mean;
  Draw draw(seed);
  out.draws.resize(kDraws);
  for (float& to : out.draws) {
    double sum = 0;
    for (size_t i = 0; i < blocks; ++i) sum += sums.at(draw.below(sums.size()));
    // A draw of 0 or less has no logarithm.
    to = static_cast<float>(std::log1p(std::max(sum * scale, -0.99)));
  }
  return out;
}

Ratio ratio(const Estimate& a, const Estimate& b) {
  // Logarithms: their difference is the logarithm of the ratio, and its interval can never go below 0.
  std::vector<float> draws(kDraws);
  for (size_t i = 0; i < kDraws; ++i) draws[i] = b.draws[i] - a.draws[i];
  const double error_a = std::pow(a.relative_error(), 2), error_b = std::pow(b.relative_error(), 2);
  const double error = error_a + error_b;
  Ratio out;
  out.ratio = out.low = out.high = b.value / a.value;
  if (error <= 0) {  // every step of either run was the same
    out.p = a.value == b.value ? 1 : 0;
    return out;
  }
  // Welch and Satterthwaite.
  const double freedom = error * error / (error_a * error_a / a.freedom + error_b * error_b / b.freedom);
  const double wider = student_of_normal(kNormal95, freedom) / kNormal95;
  out.low = out.ratio * std::exp(wider * static_cast<double>(std::min(quantile(draws, 0.025), 0.0F)));
  out.high = out.ratio * std::exp(wider * static_cast<double>(std::max(quantile(draws, 0.975), 0.0F)));
  const double z = normal_of_student(std::log(out.ratio) / std::sqrt(error), freedom);
  out.p = std::erfc(z / std::sqrt(2.0));
  return out;
}

double largest_discovery(std::vector<double> p, double share) {
  std::sort(p.begin(), p.end());
  for (size_t i = p.size(); i-- > 0;) {
    if (p[i] <= share * static_cast<double>(i + 1) / static_cast<double>(p.size())) return p[i];
  }
  return -1;
}

}  // namespace lockstep::analysis::compare
