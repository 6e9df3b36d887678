// SPDX-License-Identifier: Apache-2.0
// How long a run was ever quiet while it was well: what tells a rank that is late from one that will not
// come. Measured from the run itself, as the largest time between two operations that followed each other on
// a communicator.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/record_gaps.h"

namespace lockstep::analysis::hang {

// What wait is still normal. A heartbeat comes once a second, so nothing below that can be told apart.
struct Patience {
  int64_t normal_ns = 10'000'000'000;  // the largest gap
  bool measured = false;               // else too few operations: a guess
  bool waived = false;                 // every wait is reported, and none is certain
  int64_t suspicious_ns() const {
    return waived ? -1 : std::max<int64_t>(normal_ns + normal_ns / 2, 1'000'000'000);
  }
  int64_t certain_ns() const { return waived ? INT64_MAX : std::max<int64_t>(2 * normal_ns, 2'000'000'000); }
};

class Cadence {
 public:
  explicit Cadence(const model::Job& job, bool waived = false)
      : job_(job), waived_(waived), gaps_(model::record_gaps(job)), comms_(job.comms.size()) {}
  // Of one communicator; of the whole job where it had too few operations.
  Patience of_comm(uint32_t comm);
  // The largest gap of any communicator.
  Patience of_job();

 private:
  const Patience& measure(uint32_t comm);
  const model::Job& job_;
  const bool waived_;
  std::vector<model::RecordGap> gaps_;  // what lies between two operations of such a record is not known
  std::vector<std::optional<Patience>> comms_;
  std::optional<Patience> whole_;
};

}  // namespace lockstep::analysis::hang
