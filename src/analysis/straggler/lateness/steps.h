// SPDX-License-Identifier: Apache-2.0
// The steps of a run as one of its processes went through them: from its marks, else from the period of its
// operations.
#pragma once
#include <cstdint>
#include <vector>

#include "model/job.h"

namespace lockstep::analysis::straggler {

struct Steps {
  enum class Source : uint8_t {
    kMarks,   // lockstep.h
    kPeriod,  // the operations repeat; whatever came before the first full period is step 0
    kSlices,  // nothing repeats: equal numbers of operations
  } source = Source::kSlices;
  std::vector<int64_t>
      begin_ns;  // ascending, on the reference clock as in exclusive_times.h: of the host's launches
  std::vector<int64_t> number;  // as the program or this count calls it
  uint32_t period = 0;          // operations in a step; kMarks: 0
  uint32_t process = 0;         // whose

  size_t size() const { return begin_ns.size(); }
  // Position of the step at that time; the first for all before it.
  size_t at(int64_t ns) const;
};

Steps find_steps(const model::Job& job, uint32_t process);
// As the first of those processes went through them that mark real ones; else the parts of the first that
// recorded any. None: no process did.
Steps find_steps(const model::Job& job);

// A time of its host on the reference clock; where that is not known, as it is.
int64_t common_or_own_ns(const model::Job& job, uint32_t process, int64_t ns);

// Where a sequence ends in repetitions: [begin, begin + period * n) are n >= 3 equal parts, and few items
// follow.
struct Period {
  size_t begin = 0, length = 0, repeats = 0;  // length 0: none
};
Period find_period(const std::vector<uint32_t>& sequence);

}  // namespace lockstep::analysis::straggler
