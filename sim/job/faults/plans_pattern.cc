// SPDX-License-Identifier: Apache-2.0
// Lateness by when it comes and whom it befalls, of a size that is measured: the same job is played without
// it, and the delays are scaled until what they cost is what was drawn.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "job/faults/plans.h"

namespace lockstep::sim::job {
namespace {

// Of the run. From clearly more than what is worth a word to what nobody overlooks.
constexpr double kLeastCost = 0.015, kMostCost = 0.25;
constexpr int kLeastSteps = 16;  // a period or a tail needs some
constexpr double kUneven = 0.2;  // by which ranks that are late together differ

// How late a late rank is in each step, against the others.
struct When {
  std::string name;
  std::vector<double> weights;  // by step
  int period = 0;               // 0: none
};

class Pattern {
 public:
  Pattern(const FaultInput& input, Chooser& choose) : in_(input), choose_(choose) {}

  When of(std::string_view name) {
    When when{std::string(name), std::vector<double>(static_cast<size_t>(in_.steps)), 0};
    if (name == "every") fill(0, in_.steps, &when);
    if (name == "since") fill(choose_.step(), in_.steps, &when);
    if (name == "window") window(&when);
    if (name == "periodic") periodic(&when);
    if (name == "tail") tail(&when);
    if (name == "growing") growing(&when);
    if (name == "once") when.weights[static_cast<size_t>(choose_.step())] = 1;
    return when;
  }

 private:
  static void fill(int first, int until, When* when) {
    std::fill(when->weights.begin() + first, when->weights.begin() + until, 1);
  }

  void window(When* when) {
    const int length = choose_.from(4, in_.steps / 3 + 1);
    const int first = choose_.from(in_.steps / 6, in_.steps - length - 1);
    fill(first, first + length, when);
  }

  void periodic(When* when) {
    when->period = choose_.from(3, in_.steps / 4 + 1);
    for (int step = choose_.from(1, when->period + 1); step < in_.steps; step += when->period)
      when->weights[static_cast<size_t>(step)] = 1;
  }

  // Few steps; of those, few are much later than the others.
  void tail(When* when) {
    constexpr double kShape = 1.5, kMost = 4;
    const int late = std::max(5, static_cast<int>(in_.steps * choose_.between(0.08, 0.25)));
    for (int left = late; left > 0;) {
      double& weight = when->weights[static_cast<size_t>(choose_.from(1, in_.steps))];
      if (weight > 0) continue;
      weight = std::min(kMost, std::pow(choose_.between(0, 1), -1 / kShape));
      --left;
    }
  }

  void growing(When* when) {
    const int first = choose_.from(in_.steps / 6, in_.steps / 3 + 1);
    for (int step = first; step < in_.steps; ++step)
      when->weights[static_cast<size_t>(step)] = step - first + 1;
  }

  const FaultInput& in_;
  Chooser& choose_;
};

// Late ranks, and how late each is against the others of them.
struct Who {
  std::vector<std::pair<int, double>> ranks;
  std::vector<int> also;  // late, too, but their pipeline hides it
};

int ranks_of_stage(const FaultInput& input) { return input.layout.sizes().tp * input.layout.sizes().dp; }

Result<Who> few_ranks(const FaultInput& input, Chooser& choose) {
  const int all = ranks_of_stage(input);
  if (all < 6) return Error{ErrorCode::kUsage, "late:few needs six ranks in a pipeline stage", ""};
  const auto wanted = 2 + choose.below(static_cast<uint64_t>(std::min(7, all / 4)));
  std::set<int> ranks;
  while (ranks.size() < wanted) ranks.insert(static_cast<int>(choose.below(static_cast<uint64_t>(all))));
  Who who;
  for (int rank : ranks) who.ranks.emplace_back(rank, choose.between(1 - kUneven, 1 + kUneven));
  return who;
}

// Of two hosts that differ neither stands out.
Result<Who> one_host(const FaultInput& input, Chooser& choose) {
  if (ranks_of_stage(input) < 3 * input.layout.sizes().ranks_per_host || !input.deep)
    return Error{ErrorCode::kUsage,
                 "late:host needs three hosts a pipeline stage, and --mode deep: else nothing aligns the "
                 "clocks of hosts",
                 ""};
  const int host = input.layout.host_of(first_stage_rank(input, choose));
  Who who;
  for (int rank : input.layout.ranks_of_host(host)) {
    if (input.layout.stage_of(rank) != 0) who.also.push_back(rank);
    who.ranks.emplace_back(rank, choose.between(1 - kUneven, 1 + kUneven));
  }
  return who;
}

std::vector<Delay> delays_of(const When& when, const Who& who, double Delay::*part, double us) {
  std::vector<Delay> delays;
  for (const auto& [rank, factor] : who.ranks) {
    for (int step = 0; step < static_cast<int>(when.weights.size()); ++step) {
      const double weight = when.weights[static_cast<size_t>(step)];
      if (weight == 0) continue;
      Delay& delay = delays.emplace_back();
      delay.rank = rank;
      delay.from_step = step;
      delay.until_step = step + 1;
      delay.*part = us * weight * factor;
    }
  }
  return delays;
}

struct Size {
  double us = 0;     // of a step of weight 1
  double share = 0;  // of the run, what it costs
};
// What others' noise hides of a delay costs nothing, so the size that costs `share` is searched for: doubled
// until it costs enough, then halved into.
Size sized(const FaultInput& input, const When& when, const Who& who, double Delay::*part, double share) {
  constexpr int kDoublings = 12, kHalvings = 6;
  constexpr double kNear = 0.1;
  const double healthy_us = run_us(input, {});
  const double weights = std::accumulate(when.weights.begin(), when.weights.end(), 0.0);
  auto costing = [&](double us) {
    Disturbance disturbance;
    disturbance.delays = delays_of(when, who, part, us);
    const double late_us = run_us(input, disturbance);
    return Size{us, (late_us - healthy_us) / late_us};
  };
  Size low, high = costing(healthy_us * share / (1 - share) / weights);
  for (int i = 0; i < kDoublings && high.share < share * (1 - kNear); ++i) {
    low = high;
    high = costing(high.us * 2);
  }
  for (int i = 0; i < kHalvings && high.share > share * (1 + kNear); ++i) {
    const Size middle = costing((low.us + high.us) / 2);
    (middle.share < share * (1 - kNear) ? low : high) = middle;
  }
  return high;
}

void describe(const When& when, const Who& who, const Size& size, Truth* truth) {
  truth->pattern = when.name;
  truth->period = when.period;
  truth->cost_share = size.share;
  const auto late = [](double weight) { return weight > 0; };
  const auto first = std::find_if(when.weights.begin(), when.weights.end(), late);
  const auto last = std::find_if(when.weights.rbegin(), when.weights.rend(), late);
  truth->since_step = static_cast<int>(first - when.weights.begin());
  truth->until_step = static_cast<int>(when.weights.rend() - last);
  const double weights = std::accumulate(when.weights.begin(), when.weights.end(), 0.0);
  truth->effect_ms =
      size.us * 1e-3 * weights / static_cast<double>(std::count_if(first, when.weights.end(), late));
  truth->also = who.also;
  for (const auto& [rank, factor] : who.ranks) {
    if (std::find(who.also.begin(), who.also.end(), rank) == who.also.end()) truth->ranks.push_back(rank);
  }
}

}  // namespace

Result<FaultPlan> plan_late_pattern(std::string_view variant, const FaultInput& input) {
  const std::string_view name = variant.substr(0, variant.find(':'));
  const bool on_gpu = name.size() != variant.size();
  if (on_gpu && !input.deep) return wrong_input("lateness of a GPU shows in deep mode only: --mode deep");
  if (input.steps < kLeastSteps) return wrong_input("late needs --steps 16 or more");
  Chooser choose(input);
  Who who;
  const bool several = name == "few" || name == "host";
  if (name == "few") {
    LOCKSTEP_ASSIGN(who, few_ranks(input, choose));
  } else if (name == "host") {
    LOCKSTEP_ASSIGN(who, one_host(input, choose));
  } else {
    who.ranks = {{first_stage_rank(input, choose), 1}};
  }
  const When when = Pattern(input, choose).of(several ? "since" : name);
  double share = kLeastCost * std::pow(kMostCost / kLeastCost, choose.between(0, 1));
  // What is lost once is more than a step's length.
  if (name == "once") share = std::max(share, 1.3 / (input.steps + 1.3));
  double Delay::*const part = on_gpu ? &Delay::gpu_us : &Delay::host_us;
  const Size size = sized(input, when, who, part, share);
  FaultPlan plan;
  plan.disturbance.delays = delays_of(when, who, part, size.us);
  describe(when, who, size, &plan.truth);
  plan.truth.classes = {on_gpu ? "gpu-late" : "host-late"};
  if (name == "once") {  // nobody is to blame for good
    plan.truth.classes = {"imbalance"};
    plan.truth.also.swap(plan.truth.ranks);
  }
  return plan;
}

}  // namespace lockstep::sim::job
