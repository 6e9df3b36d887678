// SPDX-License-Identifier: Apache-2.0
// Quartiles instead of means: a few operations that something else held up would pull a mean down. An
// operation that took no longer than its time is uncertain could have any bandwidth, mostly a high one, so it
// is counted apart.
#include "analysis/bandwidth/rate_sums.h"

#include <algorithm>

namespace lockstep::analysis::bandwidth {

// Linear in the number of operations, where sorting would not be. The order of the values changes.
double quantile(Column<float>& values, double share) {
  auto at = values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return static_cast<double>(*at);
}

void RateSums::add(uint64_t size, double time_ns, double error_ns) {
  if (time_ns <= error_ns || time_ns <= 0) {
    ++uncertain_;
    return;
  }
  algbw_.push_back(static_cast<float>(static_cast<double>(size) / time_ns));
  error_.push_back(static_cast<float>(error_ns / time_ns));
  bytes_ += size;
  time_ns_ += time_ns;
}

void RateSums::fill(double factor, Rate& rate) {
  rate.ops = algbw_.size();
  rate.uncertain = uncertain_;
  rate.bytes = bytes_;
  rate.time_ns = time_ns_;
  if (algbw_.empty()) return;
  rate.algbw = {quantile(algbw_, 0.25), quantile(algbw_, 0.5), quantile(algbw_, 0.75)};
  rate.busbw = {rate.algbw.low * factor, rate.algbw.middle * factor, rate.algbw.high * factor};
  rate.error = quantile(error_, 0.5);
}

std::optional<Ceiling> lowest_ceiling(const model::Job& job, const std::set<uint32_t>& processes) {
  std::optional<Ceiling> lowest;
  for (uint32_t process : processes) {
    const std::optional<Ceiling> own = ceiling(job.text(job.processes[process].row.gpu_model));
    if (!own) return std::nullopt;
    if (!lowest || own->gbps < lowest->gbps) lowest = own;
  }
  return lowest;
}

}  // namespace lockstep::analysis::bandwidth
