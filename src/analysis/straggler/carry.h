// SPDX-License-Identifier: Apache-2.0
// How much of a member's lateness at one operation it brings along from the one before on the same communicator. Work
// that an operation holds up starts over with it: all members leave it together, and who is late at the next is late
// anew. Work that overlaps with it does not: who is late stays late, and must be blamed for that once.
//
// Which of the two it is shows in the fluctuations, whoever is late on average: at each place of the repeating program,
// the change of a member's lateness from one round to the next, against the same change at the place before.
#pragma once
#include <cstdint>
#include <vector>

#include "model/job.h"

namespace lockstep::analysis::straggler {

class Carry {
 public:
  // `lateness`: by process, columns by position in JobOps; NaN unknown. `members`: of one communicator, compared.
  Carry(const model::Job& job, const std::vector<uint32_t>& members,
        const std::vector<std::vector<float>>& lateness);
  // Share of the lateness at `index` - 1 that is still there at `index`: 0 to 1.
  float at(uint32_t index) const;

 private:
  float shares_at(size_t place, const model::Job& job, const std::vector<uint32_t>& members,
                  const std::vector<std::vector<float>>& lateness) const;
  size_t first_ = 0, period_ = 1;
  std::vector<float> share_;  // by place in the period
};

}  // namespace lockstep::analysis::straggler
