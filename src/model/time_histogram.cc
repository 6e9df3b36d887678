// SPDX-License-Identifier: Apache-2.0
#include "model/time_histogram.h"

#include <algorithm>
#include <bit>

namespace lockstep::model {

// A float's exponent and the first two bits of its fraction are the cell.
// The last cell takes all that is longer, and what is no number.
void TimeHistogram::add(float ns) {
  const size_t cell = ns < 1 ? 0 : (std::bit_cast<uint32_t>(ns) >> kShift) - kFirst + 1;
  ++cells_[std::min(cell, cells_.size() - 1)];
  ++count_;
}

void TimeHistogram::add(const TimeHistogram& other) {
  for (size_t cell = 0; cell < cells_.size(); ++cell) cells_[cell] += other.cells_[cell];
  count_ += other.count_;
}

double TimeHistogram::quantile(double share) const {
  const auto wanted = static_cast<uint64_t>(share * static_cast<double>(count_));
  uint64_t below = 0;
  for (size_t cell = 0; cell < cells_.size(); ++cell) {
    below += cells_[cell];
    if (below <= wanted && below < count_) continue;  // the greatest of all is the quantile of 1
    if (cell == 0) return 0;
    // The middle of a cell is within an eighth of all that is in it.
    const uint32_t middle = ((static_cast<uint32_t>(cell) - 1 + kFirst) << kShift) + (1u << (kShift - 1));
    return static_cast<double>(std::bit_cast<float>(middle));
  }
  return 0;
}

}  // namespace lockstep::model
