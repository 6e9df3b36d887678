// SPDX-License-Identifier: Apache-2.0
// Operations that are alike, added up to a Rate.
#pragma once
#include <set>
#include <vector>

#include "analysis/bandwidth/rates.h"
#include "base/column_memory.h"

namespace lockstep::analysis::bandwidth {

class RateSums {
 public:
  // An operation of `size` bytes that took `time_ns`, give or take `error_ns`; uncertain if that is no less.
  void add(uint64_t size, double time_ns, double error_ns);
  // busbw is algbw times `factor`. Fills in what comes from operations; leaves the rest of `rate` alone.
  void fill(double factor, Rate& rate);

 private:
  Column<float> algbw_, error_;
  uint64_t uncertain_ = 0, bytes_ = 0;
  double time_ns_ = 0;
};

// The value below which `share` of them lie; not of none.
double quantile(Column<float>& values, double share);

// The lowest of the processes' ceilings; nothing if one is unknown.
std::optional<Ceiling> lowest_ceiling(const model::Job& job, const std::set<uint32_t>& processes);

// Appends the rates of what each pair of members sent to each other.
void measure_pairs(const model::Job& job, uint32_t comm, const std::function<void(const Moved&)>& each,
                   Rates& out);

}  // namespace lockstep::analysis::bandwidth
