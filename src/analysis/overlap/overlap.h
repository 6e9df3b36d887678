// SPDX-License-Identifier: Apache-2.0
// How the GPUs of each rank spend a step: computing, communicating with computation beside it (hidden) or
// without (exposed), copying alone, or with nothing to do. Only of processes whose kernels are known.
#pragma once
#include <cstdint>
#include <vector>

#include "model/job.h"

namespace lockstep::analysis::overlap {

// Of one process, per device; ns of an average step. The parts of a step: computing, exposed, copying, idle.
struct RankOverlap {
  uint32_t process = 0;
  size_t steps = 0;  // that were averaged
  bool are_whole =
      false;  // false: none of them was seen to its end, the last is cut at the end of the GPU's work
  bool are_steps = false;  // false: the process has no steps, all of its time is one
  double length_ns = 0;
  double computing_ns = 0, communicating_ns = 0, exposed_ns = 0, copying_ns = 0, idle_ns = 0;
  double hidden_ns() const { return communicating_ns - exposed_ns; }
  // Of a step.
  double exposed_share() const { return length_ns > 0 ? exposed_ns / length_ns : 0; }
};

// In the order of the processes; those without kernels are left out.
std::vector<RankOverlap> measure(const model::Job& job);

}  // namespace lockstep::analysis::overlap
