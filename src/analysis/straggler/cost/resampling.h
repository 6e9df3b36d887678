// SPDX-License-Identifier: Apache-2.0
// How sure a sum over steps is: block bootstrap. Steps are drawn again in blocks, as late steps come in runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::analysis::straggler {

struct Interval {
  double low = 0, middle = 0, high = 0;
};

// Draws the same blocks in every run of the program. Several sums of the same steps share what was drawn.
class Resampler {
 public:
  explicit Resampler(size_t steps);

  // The sum of `values`, of which there are as many as steps; 95 of 100 resamples lie between low and high.
  Interval total(std::span<const float> values) const;
  size_t block() const { return block_; }  // steps

  static constexpr size_t kResamples = 200;

 private:
  size_t steps_, block_, blocks_;
  std::vector<uint16_t> drawn_;  // by resample and block: how often
};

}  // namespace lockstep::analysis::straggler
