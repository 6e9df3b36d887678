// SPDX-License-Identifier: Apache-2.0
// Faults after which a job hangs.
#include <algorithm>

#include "job/fault_plans.h"

namespace lockstep::sim::job {
namespace {

bool any_collective(const Unit&, const Group&) { return true; }

Target choose_target(const FaultInput& input, Chooser& choose) {
  const int rank = choose.rank();
  const int unit = choose.one_of(collectives(input, rank, any_collective));
  return target_at(input, rank, {choose.step(), unit});
}

}  // namespace

Result<FaultPlan> plan_never_joined(std::string_view variant, const FaultInput& input) {
  Chooser choose(input);
  FaultPlan plan;
  const Target target = choose_target(input, choose);
  plan.disturbance.stops[target.rank] = {
      target.at, variant == "finished" ? Stop::Manner::kFinished : Stop::Manner::kElsewhere};
  plan.truth.classes = {"never-joined"};
  plan.truth.ranks = {target.rank};
  plan.truth.hangs = true;
  name_op(target, &plan.truth);
  return plan;
}

}  // namespace lockstep::sim::job
