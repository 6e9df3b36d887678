// SPDX-License-Identifier: Apache-2.0
// Steps that were seen to their end are averaged alone, if there are any: one that was cut would make the
// average look shorter. Times are per device, as the kernels of two GPUs run side by side and would add up to
// more than the step.
#include <algorithm>

#include "analysis/overlap/overlap.h"

namespace lockstep::analysis::overlap {

std::vector<RankOverlap> measure(const model::Job& job) {
  std::vector<RankOverlap> out;
  for (uint32_t process = 0; process < job.processes.size(); ++process) {
    const std::vector<model::GpuStep>& steps = job.processes[process].gpu_steps;
    if (steps.empty()) continue;
    RankOverlap rank{.process = process};
    rank.are_whole =
        std::any_of(steps.begin(), steps.end(), [](const model::GpuStep& step) { return step.is_whole; });
    rank.are_steps = steps.front().number >= 0 || steps.size() > 1;
    for (const model::GpuStep& step : steps) {
      if (step.is_whole != rank.are_whole) continue;
      const double devices = step.devices;
      ++rank.steps;
      rank.length_ns += static_cast<double>(step.length_ns());
      rank.computing_ns += static_cast<double>(step.computing_ns) / devices;
      rank.communicating_ns += static_cast<double>(step.communicating_ns) / devices;
      rank.exposed_ns += static_cast<double>(step.exposed_ns) / devices;
      rank.copying_ns += static_cast<double>(step.copying_ns) / devices;
      rank.idle_ns += static_cast<double>(step.idle_ns()) / devices;
    }
    for (double RankOverlap::*sum :
         {&RankOverlap::length_ns, &RankOverlap::computing_ns, &RankOverlap::communicating_ns,
          &RankOverlap::exposed_ns, &RankOverlap::copying_ns, &RankOverlap::idle_ns})
      rank.*sum /= static_cast<double>(rank.steps);
    out.push_back(rank);
  }
  return out;
}

}  // namespace lockstep::analysis::overlap
