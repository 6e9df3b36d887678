// SPDX-License-Identifier: Apache-2.0
// Healthy jobs that look troubled: pauses that all ranks share, and differences between ranks that stay below
// what is worth a word.
#include <algorithm>
#include <cmath>

#include "job/faults/plans.h"

namespace lockstep::sim::job {
namespace {

// What differences may cost and still be healthy, below the limits of the verdict: of the run in all, of the
// run by one rank, and of a step's length in one step.
constexpr double kMostInAll = 0.03, kMostByOne = 0.006, kMostAtOnce = 0.4;
constexpr double kMs = 1000;  // us

using PerRank = std::vector<double>;

// Common pauses, and differences between ranks in units that are sized once all are known.
class Unrest {
 public:
  Unrest(const FaultInput& input, double Delay::*part) : in_(input), part_(part) {}

  void pause(int step, double us) { common_[step] += us; }
  void differ(int step, PerRank units) { units_[step] = std::move(units); }

  void apply(Disturbance* out) const {
    for (const auto& [step, us] : common_) add(step, PerRank(ranks(), us), 1, out);
    if (units_.empty()) return;
    const double unit_us = unit(run_us(in_, *out));
    for (const auto& [step, units] : units_) add(step, units, unit_us, out);
  }

 private:
  size_t ranks() const { return static_cast<size_t>(in_.layout.ranks()); }

  double unit(double run_us) const {
    double in_all = 0, at_once = 0;
    PerRank by_one(ranks());
    for (const auto& [step, units] : units_) {
      const auto [least, most] = std::minmax_element(units.begin(), units.end());
      in_all += *most - *least;
      at_once = std::max(at_once, *most - *least);
      for (size_t rank = 0; rank < units.size(); ++rank) by_one[rank] += units[rank] - *least;
    }
    double common_us = 0;
    for (const auto& [step, us] : common_) common_us += us;
    const double step_us = (run_us - common_us) / in_.steps;
    return std::min({kMostInAll * run_us / in_all,
                     kMostByOne * run_us / *std::max_element(by_one.begin(), by_one.end()),
                     kMostAtOnce * step_us / at_once});
  }

  void add(int step, const PerRank& units, double unit_us, Disturbance* out) const {
    for (size_t rank = 0; rank < units.size(); ++rank) {
      Delay delay{.rank = static_cast<int>(rank), .from_step = step, .until_step = step + 1};
      delay.*part_ = units[rank] * unit_us;
      out->delays.push_back(delay);
    }
  }

  const FaultInput& in_;
  double Delay::*part_;
  std::map<int, double> common_;  // by step
  std::map<int, PerRank> units_;  // by step
};

PerRank differences(const FaultInput& input, Chooser& choose) {
  PerRank units(static_cast<size_t>(input.layout.ranks()));
  for (double& unit : units) unit = choose.between(0, 1);
  return units;
}

// Bursts of steps in which every rank is held up, some much more than others, and never the same.
void jitter_storm(const FaultInput& input, Chooser& choose, Disturbance* out) {
  constexpr double kMost = 3;  // means
  Unrest unrest(input, choose.below(2) == 0 ? &Delay::host_us : &Delay::gpu_us);
  const int storms = 2 + static_cast<int>(choose.below(3));
  for (int storm = 0; storm < storms; ++storm) {
    const int first = choose.from(1, input.steps), until = std::min(input.steps, first + choose.from(3, 9));
    for (int step = first; step < until; ++step) {
      PerRank units = differences(input, choose);
      for (double& unit : units) unit = std::min(kMost, -std::log(1 - unit));
      unrest.differ(step, std::move(units));
    }
  }
  unrest.apply(out);
}

// All write their part of a checkpoint, or all compile something anew: a long pause, about as long for each.
void pause_all(const FaultInput& input, Chooser& choose, const std::vector<int>& steps, Disturbance* out) {
  Unrest unrest(input, &Delay::host_us);
  for (const int step : steps) {
    unrest.pause(step, choose.between(100, 3000) * kMs);
    unrest.differ(step, differences(input, choose));
  }
  unrest.apply(out);
}

std::vector<int> every(int period, int steps) {
  std::vector<int> at;
  for (int step = period; step < steps; step += period) at.push_back(step);
  return at;
}

void checkpoint(const FaultInput& input, Chooser& choose, Disturbance* out) {
  pause_all(input, choose, every(choose.from(3, std::max(4, input.steps / 3)), input.steps), out);
}

void recompilation(const FaultInput& input, Chooser& choose, Disturbance* out) {
  std::vector<int> steps;
  for (int i = choose.from(2, 5); i > 0; --i) steps.push_back(choose.from(1, input.steps));
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  pause_all(input, choose, steps, out);
}

// Samples of all lengths: a step takes longer or shorter for all, and a little more or less for each.
void uneven_data(const FaultInput& input, Chooser& choose, Disturbance* out) {
  constexpr double kMost = 0.8;  // of the compute
  Unrest unrest(input, &Delay::gpu_us);
  for (int step = 0; step < input.steps; ++step) {
    unrest.pause(step, choose.between(0, kMost) * step_compute_us(input));
    unrest.differ(step, differences(input, choose));
  }
  unrest.apply(out);
}

// Every so often some steps forward only, behind a pause.
void evaluation(const FaultInput& input, Chooser& choose, Disturbance* out) {
  const std::vector<Program> programs =
      make_programs(input.layout, input.sizes, input.random, Phase::kEvaluation);
  const int length = choose.from(2, 4);
  for (const int first : every(choose.from(6, std::max(7, input.steps / 2)), input.steps)) {
    for (int step = first; step < std::min(first + length, input.steps); ++step) {
      for (int rank = 0; rank < input.layout.ranks(); ++rank)
        out->programs[{rank, step}] = programs[static_cast<size_t>(input.layout.stage_of(rank))];
    }
  }
}

// Processes start seconds apart, and their first step begins so, too.
void late_joiner(const FaultInput& input, Chooser& choose, Disturbance* out) {
  for (int rank = 0; rank < input.layout.ranks(); ++rank) {
    out->starts_ms[rank] = choose.between(0, 20'000);
    Delay delay{.rank = rank, .from_step = 0, .until_step = 1};
    delay.host_us = choose.between(0, 5'000) * kMs;
    out->delays.push_back(delay);
  }
}

EarlierAttempt attempt_of(const LayoutSizes& sizes, Chooser& choose) {
  return {sizes, choose.between(0.3, 0.9), choose.between(12, 60)};
}

// More or fewer replicas of the model than now, by whole expert groups.
Result<LayoutSizes> resized(const FaultInput& input, Chooser& choose) {
  LayoutSizes sizes = input.layout.sizes();
  const bool fewer = sizes.dp > sizes.ep && choose.below(2) == 0;
  sizes.dp += fewer ? -sizes.ep : sizes.ep;
  sizes.ranks = sizes.dp * sizes.tp * sizes.pp;
  if (sizes.ranks < 2) return Error{ErrorCode::kUsage, "none:elastic needs three ranks", ""};
  return sizes;
}

}  // namespace

Result<FaultPlan> plan_none(std::string_view variant, const FaultInput& input) {
  FaultPlan plan;
  if (variant == "plain") return plan;
  if (input.steps < 12) return wrong_input("an unquiet job needs --steps 12 or more");
  Chooser choose(input);
  Disturbance* const out = &plan.disturbance;
  if (variant == "jitter-storm") jitter_storm(input, choose, out);
  if (variant == "checkpoint") checkpoint(input, choose, out);
  if (variant == "recompilation") recompilation(input, choose, out);
  if (variant == "uneven-data") uneven_data(input, choose, out);
  if (variant == "evaluation") evaluation(input, choose, out);
  if (variant == "late-joiner") late_joiner(input, choose, out);
  if (variant == "restart") plan.earlier = {attempt_of(input.layout.sizes(), choose)};
  if (variant == "elastic") {
    LOCKSTEP_ASSIGN(const LayoutSizes before, resized(input, choose));
    plan.earlier = {attempt_of(before, choose)};
  }
  return plan;
}

}  // namespace lockstep::sim::job
