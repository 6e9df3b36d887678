// SPDX-License-Identifier: Apache-2.0
// Faults of jobs that go on: lateness and slow links.
#include <algorithm>

#include "job/fault_plans.h"

namespace lockstep::sim::job {
namespace {

// A rank whose lateness its pipeline does not hide: one of the first stage.
int first_stage_rank(const FaultInput& input, Chooser& choose) {
  const LayoutSizes& s = input.layout.sizes();
  return static_cast<int>(choose.below(static_cast<uint64_t>(s.tp * s.dp)));
}

}  // namespace

Result<FaultPlan> plan_none(std::string_view, const FaultInput&) { return FaultPlan{}; }

Result<FaultPlan> plan_host_late(std::string_view, const FaultInput& input) {
  Chooser choose(input);
  FaultPlan plan;
  const int rank = first_stage_rank(input, choose);
  const int step = choose.step();
  const double ms = choose.between(3, 12);
  plan.disturbance.delays.push_back({.rank = rank, .from_step = step, .host_us = ms * 1000});
  plan.truth.classes = {"host-late"};
  plan.truth.ranks = {rank};
  plan.truth.since_step = step;
  plan.truth.effect_ms = ms;
  return plan;
}

}  // namespace lockstep::sim::job
