// SPDX-License-Identifier: Apache-2.0
// Which kernel launch belongs to which kernel plan (Group), and how early the kernel of a task can have
// started.
#pragma once
#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace lockstep::job::assemble {

class Launches {
 public:
  // `trace` outlives it. Rows of one thread are in time order, as readers append them.
  explicit Launches(const model::Trace& trace);

  // Row of calls: the launch of a plan (a row of calls too); kNoRow unknown.
  uint32_t of_plan(uint32_t plan) const { return launch_[plan]; }
  // When the launch of the task's plan began; 0 if unknown: on a CUDA callback thread (graph replays) nothing
  // launches, and profiler API 1 to 4 has no launch events.
  int64_t launched_ns(uint32_t task) const;
  // A time before which the task's kernel cannot have started; 0 if unknown.
  int64_t not_before_ns(uint32_t task) const;

 private:
  const model::Trace& trace_;
  // By row of calls, for plans: the launch that precedes it on the same thread with the same comm, and when
  // the plan before it on that thread ended.
  std::vector<uint32_t> launch_;
  std::vector<int64_t> previous_end_;
};

}  // namespace lockstep::job::assemble
