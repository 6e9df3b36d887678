// SPDX-License-Identifier: Apache-2.0
// Adds up, by step, what each rank costs the others. Steps are those of the rank with the most blame, and
// other ranks' steps are mapped onto them by number, because by time a late step would fall into two. Only 64
// ranks keep their own columns; of the rest the largest value by step is enough to judge whether anybody
// stands out.
//
// The first steps warm up and do not count. Half of a pause that all ranks make is set aside as well: what
// ranks differ by in a checkpoint is nobody's habit.
#include "analysis/straggler/cost/delay_cost.h"

#include <map>
#include <numeric>

#include "analysis/straggler/median.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr size_t kWarm = 2;           // steps that warm up in every job
constexpr size_t kMostWarm = 16;      // that may, while they are long
constexpr size_t kWarmShare = 10;     // and no more than one in so many
constexpr double kWarmLength = 1.5;   // times the usual: a long step
constexpr double kOwnSteps = 0.002;   // of the run: what a rank is blamed for that may be named
constexpr float kGoodPart = 0.25f;    // of a step's loss
constexpr float kUnevenShare = 0.5f;  // of a pause that all ranks make
constexpr size_t kNear = 8;           // steps on either side: more than an evaluation has

double median(std::vector<double> values) { return values.empty() ? 0 : upper_median(std::span(values)); }

// Of the steps around one: what goes on for longer is no pause.
double near_median(const std::vector<double>& lengths, size_t at) {
  const size_t first = at - std::min(at, kNear), last = std::min(at + kNear + 1, lengths.size());
  return median(
      {lengths.begin() + static_cast<ptrdiff_t>(first), lengths.begin() + static_cast<ptrdiff_t>(last)});
}

std::vector<double> lengths_of(const Steps& steps) {
  std::vector<double> lengths;
  for (size_t i = 1; i < steps.size(); ++i)
    lengths.push_back(static_cast<double>(steps.begin_ns[i] - steps.begin_ns[i - 1]));
  return lengths;
}

// Those with the most blame first.
std::vector<uint32_t> by_blame(const Lateness& lateness) {
  std::vector<uint32_t> order(lateness.processes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::erase_if(order, [&](uint32_t process) { return lateness.late[process].empty(); });
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return lateness.processes[a].blamed_ns > lateness.processes[b].blamed_ns;
  });
  return order;
}

// Processes that it exchanges messages with.
std::vector<uint32_t> partners_of(const model::Job& job, uint32_t process) {
  std::vector<uint32_t> partners;
  for (uint32_t row : job.processes[process].members) {
    const model::Member& member = job.members[row];
    const std::vector<uint32_t>& others = job.comms[member.comm].members;
    for (const model::Lane& lane : member.lanes) {
      const auto peer = static_cast<size_t>(lane.peer);
      if (lane.ops == 0 || lane.peer < 0 || peer >= others.size() || others[peer] == model::kNoRow) continue;
      partners.push_back(job.members[others[peer]].process);
    }
  }
  return partners;
}

class Adder {
 public:
  Adder(const model::Job& job, const Lateness& lateness) : job_(job), lateness_(lateness) {}

  DelayCost add(const std::vector<uint32_t>& order) {
    costs_.span_ns = static_cast<double>(lateness_.span_ns);
    costs_.timed = lateness_.timed * 2 >= lateness_.compared;
    for (const Waits& waits : lateness_.processes) costs_.compared_ranks += waits.ops > 0;
    for (uint32_t process : order) {
      RankCost rank = costs_of(process);
      if (costs_.ranks.size() < DelayCost::kMostRanks) {
        costs_.ranks.push_back(std::move(rank));
        continue;
      }
      for (size_t step = 0; step < rank.by_step.size(); ++step)
        costs_.others[step] = std::max(costs_.others[step], rank.by_step[step]);
    }
    for (uint32_t process = 0; process < job_.processes.size(); ++process) {
      if (job_.processes[process].ops.size() != 0) clock_of(process);
    }
    if (costs_.steps.size() != 0) set_usual();
    return std::move(costs_);
  }

 private:
  // Its steps are those of the first process that comes with it.
  size_t clock_of(uint32_t process) {
    const uint32_t domain = lateness_.domains[process];
    const auto [clock, added] = clocks_.try_emplace(domain, clocks_.size());
    if (!added) return clock->second;
    costs_.steps_by_clock.push_back(find_steps(job_, process));
    costs_.domains.push_back(domain);
    if (clock->second == 0) {
      costs_.steps = costs_.steps_by_clock.front();
      costs_.others.resize(costs_.steps.size());
    }
    return clock->second;
  }

  RankCost costs_of(uint32_t process) {
    RankCost rank;
    rank.process = process;
    const size_t clocks = clocks_.size();
    rank.clock = clock_of(process);
    const bool added = clocks_.size() > clocks;
    rank.by_step.resize(costs_.steps.size());
    rank.peaks.resize(costs_.steps.size());
    rank.late_ns.resize(costs_.steps.size());
    if (rank.by_step.empty()) return rank;
    if (!added && lateness_.processes[process].blamed_ns >= kOwnSteps * costs_.span_ns)
      rank.own = count_steps(job_, process, costs_.steps_by_clock[rank.clock]);
    double blamed = 0, sure = 0;
    for (const LateOp& late : lateness_.late[process]) {
      if (!costs_others(late)) continue;
      const size_t step = costs_.step_at(rank, late.host_ns);
      rank.by_step[step] += late.blame_ns;
      if (static_cast<double>(late.blame_ns) >= costs_.least_scattered_ns())
        rank.peaks[step] += late.blame_ns;
      blamed += static_cast<double>(late.blame_ns);
      sure += static_cast<double>(std::max(late.blame_ns - late.error_ns, 0.0f));
    }
    if (blamed > 0) rank.sure_share = sure / blamed;
    for (const LateOp& late : lateness_.late[process]) {
      if (!costs_others(late)) continue;
      const size_t step = costs_.step_at(rank, late.host_ns);
      if (late.blame_ns >= kGoodPart * rank.by_step[step] && rank.late_ns[step] == 0)
        rank.late_ns[step] = late.host_ns;
    }
    rank.partners = partners_of(job_, process);
    return rank;
  }

  // A step's begin is a launch of one rank: it comes later by what this rank loses in the step itself, and
  // later by what others lose before it. So the lengths of two neighbors are taken together, less what was
  // lost in either.
  void set_usual() {
    const std::vector<double> lengths = lengths_of(costs_.steps);
    costs_.usual_step_ns = median(lengths);
    const size_t steps = costs_.steps.size();
    std::vector<double> lost(costs_.others.begin(), costs_.others.end());
    for (const RankCost& rank : costs_.ranks) {
      for (size_t step = 0; step < steps; ++step)
        lost[step] = std::max(lost[step], static_cast<double>(rank.by_step[step]));
    }
    std::vector<double> own;  // lengths without what was lost
    for (size_t i = 0; i < lengths.size(); ++i) own.push_back(std::max(lengths[i] - lost[i], 0.0));
    const double usual = median(own);
    costs_.uneven_ns.resize(steps);
    for (size_t step = 1; step < steps; ++step) {
      const double here = near_median(own, step - 1);
      const double after = step < lengths.size() ? lengths[step] : here;
      const double pause = lengths[step - 1] + after - lost[step - 1] - lost[step] - 2 * here;
      costs_.uneven_ns[step] = kUnevenShare * static_cast<float>(std::max(pause, 0.0));
    }
    const size_t most = std::min(std::clamp(steps / kWarmShare, kWarm, kMostWarm), lengths.size());
    costs_.first = std::min(kWarm, steps);
    while (costs_.first < most && own[costs_.first] > kWarmLength * usual) ++costs_.first;
  }

  const model::Job& job_;
  const Lateness& lateness_;
  std::map<uint32_t, size_t> clocks_;
  DelayCost costs_;
};

// Its position in JobOps, of the collective with this index.
std::optional<uint32_t> find_op(const model::Job& job, const model::Member& member, uint32_t index) {
  const auto& indexes = job.ops(member).index;
  const auto begin = indexes.begin() + member.first, end = begin + member.ops;
  const auto at = std::lower_bound(begin, end, index);
  if (at == end || *at != index) return std::nullopt;
  return static_cast<uint32_t>(at - indexes.begin());
}

struct SharedOp {
  uint32_t one = 0, other = 0;  // positions in JobOps
};

// A collective that both processes have called: of the communicator of which both have kept most, the one in
// the middle.
std::optional<SharedOp> shared_op(const model::Job& job, uint32_t one, uint32_t other) {
  std::map<uint32_t, uint32_t> rows;  // of the other's members, by communicator
  for (uint32_t row : job.processes[other].members) {
    if (is_matched(job.members[row])) rows.emplace(job.members[row].comm, row);
  }
  std::optional<SharedOp> best;
  uint32_t most = 0;
  for (uint32_t row : job.processes[one].members) {
    const model::Member& member = job.members[row];
    const auto same = rows.find(member.comm);
    if (!is_matched(member) || same == rows.end()) continue;
    const model::Member& peer = job.members[same->second];
    const uint32_t first = std::max(job.oldest_index(member), job.oldest_index(peer));
    const uint32_t end = std::min(job.next_index(member), job.next_index(peer));
    if (end <= first || end - first <= most) continue;
    const uint32_t middle = first + (end - first) / 2;
    const auto its = find_op(job, member, middle), others = find_op(job, peer, middle);
    if (!its || !others) continue;
    most = end - first;
    best = SharedOp{.one = *its, .other = *others};
  }
  return best;
}

// A step of `steps`.
int64_t step_of(const model::Job& job, const Steps& steps, uint32_t op) {
  const int64_t ns = common_or_own_ns(job, steps.process, host_ns(job.processes[steps.process].ops, op));
  return static_cast<int64_t>(steps.at(ns + DelayCost::kClockSlackNs));
}

}  // namespace

// Ranks of one program count alike, though a ring may have kept more of one. An operation that both have
// called tells how much; where there is none, the time of the step in the middle, which hosts that run ahead
// of their GPUs by several steps reach at different times.
CountedSteps count_steps(const model::Job& job, uint32_t process, const Steps& usual) {
  CountedSteps own{.steps = find_steps(job, process), .shift = 0};
  if (own.steps.source != usual.source || own.steps.period != usual.period || own.steps.size() < 2 ||
      usual.size() < 2)
    return {};
  if (const auto shared = shared_op(job, process, usual.process)) {
    own.shift = step_of(job, usual, shared->other) - step_of(job, own.steps, shared->one);
    return own;
  }
  const size_t middle = own.steps.size() / 2;
  const int64_t begin = own.steps.begin_ns[middle];
  size_t nearest = usual.at(begin);
  if (nearest + 1 < usual.size() && usual.begin_ns[nearest + 1] - begin < begin - usual.begin_ns[nearest])
    ++nearest;
  own.shift = static_cast<int64_t>(nearest) - static_cast<int64_t>(middle);
  return own;
}

std::optional<DelayCost> sum_delay_cost(const model::Job& job, const Lateness& lateness) {
  DelayCost costs = Adder(job, lateness).add(by_blame(lateness));
  return costs.steps_by_clock.empty() ? std::nullopt : std::optional(std::move(costs));
}

}  // namespace lockstep::analysis::straggler
