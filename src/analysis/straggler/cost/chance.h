// SPDX-License-Identifier: Apache-2.0
// How likely chance does what was seen.
#pragma once
#include <cmath>
#include <cstddef>

namespace lockstep::analysis::straggler {

// What chance may do no oftener, where something is said not to be chance: in 7 of 7 late steps of two ranks,
// in 4 of 4 of four, in 3 of 3 of eight.
inline constexpr double kMostLikely = 0.02;

// How likely `times` or more of so many occasions are met, each with the same probability.
inline double likely_as_often(size_t times, size_t occasions, double probability) {
  if (times == 0 || probability >= 1) return 1;
  if (probability <= 0) return 0;
  const double n = static_cast<double>(occasions);
  double sum = 0;
  for (size_t k = times; k <= occasions; ++k) {
    const double at = static_cast<double>(k);
    const double term = std::exp(std::lgamma(n + 1) - std::lgamma(at + 1) - std::lgamma(n - at + 1) +
                                 at * std::log(probability) + (n - at) * std::log1p(-probability));
    sum += term;
    if (term < sum * 1e-9 && at > n * probability) break;
  }
  return sum;
}

}  // namespace lockstep::analysis::straggler
