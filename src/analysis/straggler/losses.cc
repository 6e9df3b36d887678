// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/losses.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "analysis/straggler/median.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr double kPersistentShare = 0.75;  // of the steps

double median(std::vector<double> values) { return values.empty() ? 0 : upper_median(std::span(values)); }

double median_of(const std::vector<float>& values, size_t first, size_t last) {
  return median(std::vector<double>(values.begin() + static_cast<ptrdiff_t>(first),
                                    values.begin() + static_cast<ptrdiff_t>(last + 1)));
}

double usual_step_ns(const Losses& losses) {
  std::vector<double> lengths;
  for (size_t i = 1; i < losses.steps.size(); ++i)
    lengths.push_back(static_cast<double>(losses.steps.begin_ns[i] - losses.steps.begin_ns[i - 1]));
  return median(std::move(lengths));
}

// The run of steps in which a rank loses the most above a floor: [first, last]; first > last: none.
std::pair<size_t, size_t> richest(const std::vector<float>& by_step, double floor_ns) {
  std::pair<size_t, size_t> best{1, 0};
  double sum = 0, best_sum = 0;
  size_t first = 1;
  for (size_t step = 1; step < by_step.size(); ++step) {
    if (sum <= 0) sum = 0, first = step;
    sum += static_cast<double>(by_step[step]) - floor_ns;
    if (sum <= best_sum) continue;
    best_sum = sum;
    best = {first, step};
  }
  return best;
}

Persistent worst_run(const RankLoss& rank, double floor_ns) {
  Persistent run;
  auto [first, last] = richest(rank.by_step, floor_ns);
  if (first > last) return run;
  // Once more with a floor that the usual jitter before the first late step does not reach.
  const double most = median_of(rank.by_step, first, last) * 2 / 3;
  if (most > floor_ns) std::tie(first, last) = richest(rank.by_step, most);
  run.first = first;
  run.last = last;
  run.per_step_ns = median_of(rank.by_step, first, last);
  size_t high = 0;
  for (size_t step = first; step <= last; ++step) {
    run.total_ns += static_cast<double>(rank.by_step[step]);
    high += static_cast<double>(rank.by_step[step]) >= std::max(run.per_step_ns / 2, floor_ns);
  }
  run.share = static_cast<double>(high) / static_cast<double>(last - first + 1);
  return run;
}

bool stands_out(const Losses& losses, const std::vector<Persistent>& named, const Persistent& least) {
  for (size_t i = 0; i < losses.ranks.size(); ++i) {
    if (std::any_of(named.begin(), named.end(), [&](const Persistent& p) { return p.loss == i; })) continue;
    if (median_of(losses.ranks[i].by_step, least.first, least.last) * kStandOut > least.per_step_ns)
      return false;
  }
  return true;
}

}  // namespace

std::optional<Losses> sum_losses(const model::Job& job, const Lateness& lateness) {
  Losses losses;
  std::vector<uint32_t> order(lateness.processes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::erase_if(order, [&](uint32_t process) { return lateness.late[process].empty(); });
  if (order.empty()) return std::nullopt;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return lateness.processes[a].blamed_ns > lateness.processes[b].blamed_ns;
  });
  if (order.size() > Losses::kMostRanks) order.resize(Losses::kMostRanks);
  losses.span_ns = static_cast<double>(lateness.span_ns);
  losses.timed = lateness.timed * 2 >= lateness.compared;
  std::map<uint32_t, size_t> clocks;
  for (uint32_t process : order) {
    RankLoss& rank = losses.ranks.emplace_back();
    rank.process = process;
    const auto [clock, added] = clocks.try_emplace(lateness.domains[process], clocks.size());
    rank.clock = clock->second;
    if (added) losses.steps_by_clock.push_back(find_steps(job, process));
    if (losses.steps.size() == 0) losses.steps = losses.steps_by_clock.front();
    rank.by_step.resize(losses.steps.size());
    rank.peaks.resize(losses.steps.size());
    for (const LateOp& late : lateness.late[process]) {
      const size_t step = losses.step_at(rank, late.host_ns);
      rank.by_step[step] += late.blame_ns;
      if (static_cast<double>(late.blame_ns) >= losses.least_scattered_ns())
        rank.peaks[step] += late.blame_ns;
    }
  }
  return losses;
}

std::vector<Persistent> persistent(const Losses& losses) {
  const double step_ns = usual_step_ns(losses), floor = losses.least_ns(step_ns);
  std::vector<Persistent> late;
  for (size_t i = 0; i < losses.ranks.size(); ++i) {
    Persistent run = worst_run(losses.ranks[i], floor);
    run.loss = i;
    const size_t steps = run.last - run.first + 1;
    if (run.per_step_ns < kTickNs && static_cast<double>(steps) * step_ns < kLeastTimeNs) continue;
    if (run.total_ns < std::max(kShare * losses.span_ns, kLeastTotalNs) || steps < kLeastSteps ||
        run.per_step_ns < floor || run.share < kPersistentShare)
      continue;
    late.push_back(run);
  }
  std::sort(late.begin(), late.end(),
            [](const Persistent& a, const Persistent& b) { return a.per_step_ns > b.per_step_ns; });
  for (size_t named = late.size(); named > 0; --named) {
    std::vector<Persistent> culprits(late.begin(), late.begin() + static_cast<ptrdiff_t>(named));
    if (stands_out(losses, culprits, culprits.back())) return culprits;
  }
  return {};
}

std::optional<Scattered> scattered(const Losses& losses) {
  constexpr size_t kWarm = 2;
  if (losses.steps.size() < kWarm + kLeastSteps) return std::nullopt;
  Scattered out;
  std::set<size_t> worst;
  std::vector<double> by_step;
  for (size_t step = kWarm; step < losses.steps.size(); ++step) {
    size_t latest = 0;
    for (size_t i = 1; i < losses.ranks.size(); ++i) {
      if (losses.ranks[i].peaks[step] > losses.ranks[latest].peaks[step]) latest = i;
    }
    const double lost = static_cast<double>(losses.ranks[latest].peaks[step]);
    by_step.push_back(lost);
    if (lost <= losses.least_scattered_ns()) continue;
    worst.insert(latest);
    out.total_ns += lost;
    ++out.steps;
    if (lost <= out.worst_ns) continue;
    out.worst_ns = lost;
    out.step = step;
    out.loss = latest;
  }
  out.ranks = worst.size();
  out.usual_loss_ns = median(by_step);
  for (double lost : by_step) out.peaks_ns += std::max(lost - out.usual_loss_ns, 0.0);
  out.usual_step_ns = usual_step_ns(losses);
  return out;
}

}  // namespace lockstep::analysis::straggler
