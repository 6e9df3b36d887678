// SPDX-License-Identifier: Apache-2.0
// Every matched collective, member against member: who came late by his own doing, who waited, how long the
// data took.
//
// An operation is compared among the members whose clocks are aligned to each other; hosts that are not
// aligned, each by itself. A member is late by its arrival minus the median one. Of that it is blamed for
// what its own time (exclusive_times.h) exceeds the median own time, host and GPU apart, and no more; on the
// GPU, not for what it was late already at the operation before (carried_lateness.h).
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analysis/straggler/lateness/carried_lateness.h"
#include "analysis/straggler/lateness/exclusive_times.h"
#include "model/job.h"
#include "model/time_histogram.h"

namespace lockstep::analysis::straggler {

// Lateness below this is the jitter of a launch.
inline constexpr float kJitterNs = 20'000;

// One arrival that a rank is to blame for. Times as in exclusive_times.h.
struct LateOp {
  int64_t host_ns = 0;  // its launch
  uint32_t member = 0;  // of Job::members
  uint32_t op = 0;      // position in the process' JobOps
  float blame_ns = 0;   // > 0
  float host_part_ns = 0;
  bool behind = false;  // the others came as soon as the operation before was through
  bool idle = false;    // nothing was outstanding on it when the host launched it
  bool timed = false;   // arrived by GPU times
  bool fresh = false;   // by hosts alone: all had waited for each other just before
  float error_ns = 0;   // of blame_ns, half-width
  // Late together with those it met since: by its own time since its launch at `since_ns`, beyond what it was
  // blamed for so until the launch at `blamed_ns`, see together.h.
  bool together = false, has_waited = false;  // has_waited: for one of them, while it was compared
  float in_all_ns = 0;                        // what it was blamed for since `since_ns`, with this
  int64_t since_ns = 0, blamed_ns = 0;
};

// Sums over the matched operations of one communicator, or of one process.
struct Waits {
  uint64_t ops = 0;               // one for each member
  uint64_t timed = 0;             // of those, with GPU times
  double waiting_ns = 0;          // as waited_ns() has it
  double moving_ns = 0;           // timed alone: from the last arrival to the member's end
  double blamed_ns = 0;           // of LateOp::blame_ns
  model::TimeHistogram lateness;  // arrival minus the median one

  void add(const Waits& other);
};

struct Lateness {
  std::vector<Waits> comms;               // by row of Job::comms
  std::vector<Waits> processes;           // by row of Job::processes
  std::vector<std::vector<LateOp>> late;  // by process, in order of host_ns
  std::vector<uint32_t> domains;          // by process; ExclusiveTimes::domain
  int64_t span_ns = 0;                    // from the first arrival to the last, on the clocks that span most
  uint64_t compared = 0, timed = 0;       // operations
  uint32_t not_comparable = 0;            // processes left out, see ExclusiveTimes::comparable
};

// What the comparison of one group of members found, operation by operation, while it is at hand.
struct ComparedGroup {
  std::span<const MemberPast> members;
  const std::vector<ExclusiveTimes>& times;  // by process
};
// Called once for each group, in any order and on any thread, but never twice at once.
using GroupVisitor = std::function<void(const ComparedGroup& group)>;

// Cost is linear in operations. The job is matched and its clocks are aligned. `times`, if given, takes what
// was compared, by process: as large as the job.
Lateness measure(const model::Job& job, const GroupVisitor& visit = {},
                 std::vector<ExclusiveTimes>* times = nullptr);

}  // namespace lockstep::analysis::straggler
