// SPDX-License-Identifier: Apache-2.0
// Bounds a sum over steps by drawing blocks of steps again, 200 times. Late steps come in runs, so single
// steps are not independent and the usual standard error would be too small. Every run of the program draws
// the same blocks, so that a diagnosis is repeatable.
#include "analysis/straggler/cost/resampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::analysis::straggler {
namespace {

constexpr size_t kOutside = 25;  // of a thousand resamples, on each side

// SplitMix64: the n-th number needs none of those before it.
uint64_t random(uint64_t n) {
  uint64_t x = (n + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

}  // namespace

Resampler::Resampler(size_t steps)
    : steps_(steps),
      block_(std::max<size_t>(1, static_cast<size_t>(std::sqrt(static_cast<double>(steps))))),
      blocks_((steps + block_ - 1) / block_),
      drawn_(kResamples * blocks_) {
  for (size_t i = 0; i < drawn_.size(); ++i) {
    const size_t resample = i / blocks_;
    ++drawn_[resample * blocks_ + random(i) % blocks_];
  }
}

Interval Resampler::total(std::span<const float> values) const {
  std::vector<double> sums(blocks_);
  for (size_t step = 0; step < steps_; ++step) sums[step / block_] += static_cast<double>(values[step]);
  std::vector<double> totals(kResamples);
  for (size_t i = 0; i < kResamples; ++i) {
    for (size_t block = 0; block < blocks_; ++block) totals[i] += drawn_[i * blocks_ + block] * sums[block];
  }
  std::sort(totals.begin(), totals.end());
  constexpr size_t kTail = kResamples * kOutside / 1000;
  return {totals[kTail], std::accumulate(sums.begin(), sums.end(), 0.0), totals[kResamples - 1 - kTail]};
}

}  // namespace lockstep::analysis::straggler
