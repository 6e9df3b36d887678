// SPDX-License-Identifier: Apache-2.0
// Times in quarters of octaves, for quantiles to within an eighth; up to 2^47 ns. Plain data: copied and
// added up at will.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::model {

// A quarter of an octave is read off the bits of a float: exponent, and two bits of what follows. No
// logarithm.
class TimeHistogram {
 public:
  void add(float ns);  // negative ones count as 0
  void add(const TimeHistogram& other);
  uint64_t count() const { return count_; }
  double quantile(double share) const;  // ns; 0 when empty

 private:
  static constexpr uint32_t kShift = 21, kFirst = 127 << 2;  // of the bits of 1.0f
  std::array<uint32_t, 192> cells_{};
  uint64_t count_ = 0;
};

}  // namespace lockstep::model
