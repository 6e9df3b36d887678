// SPDX-License-Identifier: Apache-2.0
// Both look at what steps lost beyond what ranks differ by in a pause that all of them make: of a hundred
// ranks that write a checkpoint, one is the last.
#include "analysis/straggler/cost/scattered.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "analysis/straggler/cost/culprits.h"
#include "analysis/straggler/median.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr double kOnceShare = 0.8;    // of all that was lost beyond the usual, by the few delays
constexpr double kTurnsShare = 0.05;  // of the run, lost in delays of a tick or more
constexpr size_t kShown = 3;

// What the worst rank lost in a step.
struct Worst {
  size_t step = 0, row = 0;
  double ns = 0;
};

std::vector<Worst> worst_by_step(const DelayCost& costs, std::vector<float> RankCost::*of) {
  std::vector<Worst> out;
  for (size_t step = costs.first; step < costs.steps.size(); ++step) {
    Worst worst{step, 0, 0};
    for (size_t i = 0; i < costs.ranks.size(); ++i) {
      const float beyond = (costs.ranks[i].*of)[step] - costs.uneven_ns[step];
      if (static_cast<double>(beyond) > worst.ns) worst = {step, i, static_cast<double>(beyond)};
    }
    out.push_back(worst);
  }
  return out;
}

double usual_of(const std::vector<Worst>& worst) {
  std::vector<double> values;
  for (const Worst& of : worst) values.push_back(of.ns);
  return upper_median(std::span(values));
}

// What a rank lost in the steps that count, beyond the usual unevenness of pauses.
Interval lost_by(const DelayCost& costs, const RankCost& rank, const Resampler& resampler) {
  std::vector<float> beyond;
  for (size_t step = costs.first; step < costs.steps.size(); ++step)
    beyond.push_back(std::max(rank.by_step[step] - costs.uneven_ns[step], 0.0f));
  return resampler.total(beyond);
}

// What the rank in the middle lost: by chance, whoever comes last in one operation or the other is late in
// it. None of the ranks that DelayCost leaves out lost more than those in it.
double usual_loss(const DelayCost& costs, const std::vector<Interval>& lost) {
  const bool are_all = lost.size() < DelayCost::kMostRanks;
  const size_t middle = costs.compared_ranks / 2;
  if (lost.empty() || (are_all && middle >= lost.size())) return 0;
  std::vector<double> values;
  for (const Interval& of : lost) values.push_back(of.middle);
  std::sort(values.begin(), values.end(), std::greater<>());
  return values[std::min(middle, values.size() - 1)];
}

// Whether somebody's own doing is worth a word, though nobody stands out. Ranks that are late together hide
// what each of them costs; what one surely lost beyond the rank in the middle shows it.
bool matters(const DelayCost& costs, const std::vector<Interval>& own) {
  const double least = std::max((costs.timed ? kShare : kHostShare) * costs.span_ns, kLeastTotalNs);
  const Resampler resampler(costs.steps.size() - costs.first);
  std::vector<Interval> lost;
  for (const RankCost& rank : costs.ranks) lost.push_back(lost_by(costs, rank, resampler));
  const double usual = usual_loss(costs, lost);
  for (size_t i = 0; i < lost.size(); ++i) {
    const double most = std::max(own[i].middle, lost[i].low - usual);
    if (most * costs.ranks[i].sure_share >= least) return true;
  }
  return false;
}

}  // namespace

std::optional<FewDelays> few_delays(const DelayCost& costs) {
  if (costs.steps.size() < costs.first + kLeastSteps) return std::nullopt;
  const std::vector<Worst> by_step = worst_by_step(costs, &RankCost::by_step);
  // By hosts alone, what is less than a delay may have cost nobody anything.
  const double usual = std::max(usual_of(by_step), costs.timed ? 0.0 : costs.least_scattered_ns());
  const Worst worst = *std::max_element(by_step.begin(), by_step.end(),
                                        [](const Worst& a, const Worst& b) { return a.ns < b.ns; });
  const double least = std::max({kShare * costs.span_ns, costs.usual_step_ns, costs.least_scattered_ns()});
  if (worst.ns < least) return std::nullopt;
  FewDelays few{.row = worst.row, .steps = {}, .worst_ns = worst.ns, .total_ns = 0};
  double all = 0, of_few = 0, shortest = worst.ns, others = 0, longest_other = 0;
  for (const Worst& of : by_step) {
    const double beyond = std::max(of.ns - usual, 0.0);
    all += beyond;
    if (of.row != worst.row || of.ns < std::max(worst.ns / 2, std::min(least, worst.ns))) {
      if (of.ns > usual) others += of.ns;
      longest_other = std::max(longest_other, of.ns);
      continue;
    }
    of_few += beyond;
    shortest = std::min(shortest, of.ns);
    few.total_ns += of.ns;
    few.steps.push_back(of.step);
  }
  // What many steps lose a little of adds up, yet hides no delay that is longer than any of it.
  const bool stand_out = shortest >= kStandOut * longest_other && others < kTurnsShare * costs.span_ns;
  if (of_few < kOnceShare * all && !stand_out) return std::nullopt;
  return few;
}

std::optional<Turns> turns(const DelayCost& costs) {
  if (costs.steps.size() < costs.first + kLeastSteps) return std::nullopt;
  const auto sum = [&](std::vector<float> RankCost::*of, double least_ns) {
    Turns out;
    std::set<size_t> ranks;
    for (const Worst& worst : worst_by_step(costs, of)) {
      if (worst.ns <= least_ns) continue;
      out.total_ns += worst.ns;
      ++out.steps;
      ranks.insert(worst.row);
    }
    out.ranks = ranks.size();
    return out;
  };
  Turns out = sum(&RankCost::peaks, costs.least_scattered_ns());
  const std::vector<Interval> own = own_costs(costs);
  if (out.ranks < 2 || out.steps < kLeastSteps || out.total_ns < kTurnsShare * costs.span_ns) {
    if (!matters(costs, own)) return std::nullopt;
    out = sum(&RankCost::by_step, 0);
  }
  for (size_t i = 0; i < own.size(); ++i) out.costliest.emplace_back(costs.ranks[i].process, own[i]);
  std::stable_sort(out.costliest.begin(), out.costliest.end(),
                   [](const auto& a, const auto& b) { return a.second.middle > b.second.middle; });
  if (out.costliest.size() > kShown) out.costliest.resize(kShown);
  // What one alone cost counts each pause of all but once: it may come to a little more.
  out.total_ns = std::max(out.total_ns, out.costliest.front().second.middle);
  out.one = out.ranks < 2 || out.costliest.front().second.middle >= kOnceShare * out.total_ns;
  return out;
}

}  // namespace lockstep::analysis::straggler
