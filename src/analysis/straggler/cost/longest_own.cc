// SPDX-License-Identifier: Apache-2.0
// Nobody is seen to wait in sends, receives and operations of pairs as in a collective of all, so lateness
// that is taken operation by operation may be lost in them. Own time cannot: whatever a rank does not spend
// in communication is its own, by its own clock, and all ranks have gone through the same step. What the one
// who works longest has beyond everybody else, the others have spent in communication.
//
// It is an upper bound of what they lost: a host that waits runs ahead meanwhile, and launches the sooner
// later. So it must be twice what counts elsewhere, and is asked for last; and of a rank that has usual steps
// beside the late ones, what it works longer than in those counts. Ranks are compared with those of
// their stage, which do the same work, else with themselves in other steps. Half of a pause that all make is
// set aside, as everywhere; a step that is long for all is no single rank's. A rank whose record has slight
// gaps is left out: the operations that it lacks would count as its own time. Where more is missing of one,
// nobody is known to work longer than all.
//
// Where others work beside collectives in which they wait (hidden_work.h), the last to come seems to work
// longer in each. Where all show what they do, they show by how much.
#include "analysis/straggler/cost/longest_own.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "analysis/straggler/cost/culprits.h"
#include "analysis/straggler/cost/hidden_work.h"
#include "analysis/straggler/cost/usual_level.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/straggler/median.h"
#include "model/record_gaps.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr float kAbsent = std::numeric_limits<float>::quiet_NaN();  // in the step
constexpr float kOfAPause = 0.5f;                                   // what ranks may differ by in it
constexpr float kSinglePause = 0.25f;  // of a single delay: a pause of all that is no smaller explains it
constexpr double kLeastLead = 2 * kShare;
constexpr double kUnlike = 2;       // times as much as half of the host: one that works well longer
constexpr double kNearlyAll = 0.8;  // of all leads, one rank's

using Series = std::vector<float>;

// Of what is there; 0: nothing is.
float median_of(Series values) {
  std::erase_if(values, [](float value) { return std::isnan(value); });
  return values.empty() ? 0 : lower_median(std::span(values));
}

// Where a rank's steps lie: positions in ExclusiveTimes::order, one more than there are steps.
std::vector<size_t> begins_of(const model::Job& job, const DelayCost& costs, uint32_t process,
                              const ExclusiveTimes& own, size_t clock) {
  const Steps& usual = costs.steps_by_clock[clock];
  const CountedSteps counted = count_steps(job, process, usual);
  const Steps& steps = counted.steps.size() != 0 ? counted.steps : usual;
  std::vector<size_t> out;
  for (size_t step = 0; step <= costs.steps.size(); ++step) {
    const int64_t at = static_cast<int64_t>(step) - counted.shift;
    if (at < 0) {
      out.push_back(0);
      continue;
    }
    const bool is_past = static_cast<size_t>(at) >= steps.size() || step == costs.steps.size();
    const int64_t begin_ns = is_past ? 0 : steps.begin_ns[static_cast<size_t>(at)];
    const auto begin = std::partition_point(own.order.begin(), own.order.end(), [&](uint32_t op) {
      return is_past || own.host[op] + DelayCost::kClockSlackNs < begin_ns;
    });
    out.push_back(static_cast<size_t>(begin - own.order.begin()));
  }
  return out;
}

struct Rank {
  uint32_t process = 0;
  std::vector<size_t> begins;  // of its steps, and the end: positions in ExclusiveTimes::order
  // By step, ns: own time; of that, where nobody's work is hidden; the host's between calls; own time before
  // launches; own time beyond what is usual in the step.
  Series own, open, host, launch, beyond;
  size_t group = 0;
};

class Comparison {
 public:
  Comparison(const model::Job& job, const DelayCost& costs, std::span<const ExclusiveTimes> times)
      : job_(job), costs_(costs), times_(times) {
    std::map<uint32_t, size_t> clocks;  // by ExclusiveTimes::domain
    for (size_t clock = 0; clock < costs.domains.size(); ++clock) clocks.emplace(costs.domains[clock], clock);
    const std::vector<model::RecordGap> gaps = model::record_gaps(job);
    if (std::any_of(gaps.begin(), gaps.end(), [](const auto& gap) { return gap.any() && !gap.slight; }))
      return;
    const HiddenWork hidden(job, times);
    for (uint32_t process = 0; process < times.size(); ++process) {
      const ExclusiveTimes& own = times[process];
      const auto clock = clocks.find(own.domain);
      if (!own.comparable || own.busy.empty() || clock == clocks.end() || gaps[process].any()) continue;
      Rank rank;
      rank.process = process;
      rank.begins = begins_of(job, costs, process, own, clock->second);
      measure(rank, hidden.near(process));
      ranks_.push_back(std::move(rank));
    }
    set_usual();
  }

  OwnLeads find(Among among) const {
    std::map<uint32_t, std::vector<size_t>> units;  // by process, or host
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const uint32_t process = ranks_[i].process;
      units[among == Among::kRanks ? process : job_.processes[process].host].push_back(i);
    }
    if (units.size() < 2) return {};
    std::vector<std::vector<size_t>> members;
    for (auto& [key, of] : units) members.push_back(std::move(of));
    return find(members);
  }

 private:
  size_t steps() const { return costs_.steps.size(); }

  void measure(Rank& rank, const std::vector<bool>& near_hidden) const {
    const ExclusiveTimes& times = times_[rank.process];
    const model::JobOps& ops = job_.processes[rank.process].ops;
    int64_t before = 0, busy = 0;
    bool was_timed = true;  // what the host launched ahead is no work of the GPU
    for (size_t step = 0; step < steps(); ++step) {
      const size_t begin = rank.begins[step], end = rank.begins[step + 1];
      float host = 0, launch = 0;
      int64_t hidden = 0;
      bool timed = false;
      for (size_t at = begin; at < end; ++at) {
        const uint32_t op = times.order[at];
        host += times.cadence[op];
        launch += std::max(times.host_own[op], 0.0f);
        if (near_hidden[op]) hidden += times.busy[op] - busy;
        busy = times.busy[op];
        timed = timed || ops.is_placed(op);
      }
      rank.own.push_back(timed && was_timed ? static_cast<float>(busy - before) : kAbsent);
      rank.open.push_back(rank.own.back() - static_cast<float>(hidden));
      rank.host.push_back(host);
      rank.launch.push_back(launch);
      before = busy;
      was_timed = timed || begin == end;
    }
  }

  // By group and step; a group is those of one stage, or a rank alone in it. Of more work for all, each has
  // the same, or the same share of its own.
  void set_usual() {
    std::map<uint64_t, std::vector<size_t>> stages;
    for (size_t i = 0; i < ranks_.size(); ++i) stages[times_[ranks_[i].process].stage].push_back(i);
    Series level;
    for (const Rank& rank : ranks_) level.push_back(usual_level(rank.own, costs_.first));
    Series more_work(steps()), more_share(steps());
    for (size_t step = 0; step < steps(); ++step) {
      Series work, share;
      for (size_t i = 0; i < ranks_.size(); ++i) {
        work.push_back(ranks_[i].own[step] - level[i]);
        if (level[i] > 0) share.push_back(work.back() / level[i]);
      }
      more_work[step] = std::max(median_of(std::move(work)), 0.0f);
      more_share[step] = std::max(median_of(std::move(share)), 0.0f);
    }
    for (const auto& [stage, members] : stages) {
      Series usual(steps());
      for (size_t step = 0; step < steps(); ++step) {
        if (members.size() == 1) {
          const float own = level[members[0]];
          usual[step] = own + std::max(more_work[step], own * more_share[step]);
          continue;
        }
        Series values;
        for (size_t i : members) values.push_back(ranks_[i].own[step]);
        usual[step] = median_of(std::move(values));
      }
      const float least = median_of(usual);
      Series& pause = pauses_.emplace_back();
      for (float value : usual) pause.push_back(std::max(value - least, 0.0f));
      for (size_t i : members) {
        ranks_[i].group = pauses_.size() - 1;
        set_beyond(ranks_[i], usual, pause);
      }
    }
  }

  static void set_beyond(Rank& rank, const Series& usual, const Series& pause) {
    for (size_t step = 0; step < usual.size(); ++step) {
      const float beyond = rank.own[step] - usual[step] - kOfAPause * pause[step];
      rank.beyond.push_back(beyond > kJitterNs || std::isnan(beyond) ? beyond : 0);
    }
  }

  // By unit, what the least of its ranks has beyond the most of all others; at most one has anything in a
  // step. Nobody is compared with ranks that are absent, and nothing is said of a unit that some of are.
  std::vector<Series> leads(const std::vector<std::vector<size_t>>& units) const {
    std::vector<Series> out(units.size(), Series(steps()));
    for (size_t step = costs_.first; step < steps(); ++step) {
      size_t first = units.size();
      float most = 0, second = 0;  // of the longest of a unit
      for (size_t i = 0; i < units.size(); ++i) {
        float longest = 0;
        for (size_t rank : units[i]) {
          const float beyond = ranks_[rank].beyond[step];
          if (!std::isnan(beyond)) longest = std::max(longest, beyond);
        }
        if (longest > most)
          second = most, most = longest, first = i;
        else
          second = std::max(second, longest);
      }
      if (first == units.size()) continue;
      float least = most;
      for (size_t rank : units[first]) {
        const float beyond = ranks_[rank].beyond[step];
        least = std::isnan(beyond) ? 0 : std::min(least, beyond);
      }
      out[first][step] = std::max(least - second, 0.0f);
    }
    return out;
  }

  OwnLeads find(const std::vector<std::vector<size_t>>& units) const {
    DelayCost lead;  // RankCost::process: the unit
    lead.steps = costs_.steps;
    lead.others.resize(steps());
    lead.uneven_ns.resize(steps());
    lead.first = costs_.first;
    lead.compared_ranks = units.size();
    lead.span_ns = costs_.span_ns;
    lead.usual_step_ns = costs_.usual_step_ns;
    lead.timed = true;
    std::vector<std::pair<double, size_t>> order;
    std::vector<Series> by_unit = leads(units);
    for (size_t i = 0; i < units.size(); ++i) {
      double sum = 0;
      for (float ns : by_unit[i]) sum += static_cast<double>(ns);
      if (sum > 0) order.emplace_back(-sum, i);
    }
    std::sort(order.begin(), order.end());
    if (order.size() > DelayCost::kMostRanks) order.resize(DelayCost::kMostRanks);
    for (const auto& [sum, unit] : order) {
      RankCost& row = lead.ranks.emplace_back();
      row.process = static_cast<uint32_t>(unit);
      row.by_step = std::move(by_unit[unit]);
    }
    if (lead.ranks.empty()) return {};
    return judge(lead, units);
  }

  OwnLeads judge(const DelayCost& lead, const std::vector<std::vector<size_t>>& units) const {
    OwnLeads leads;
    std::vector<LongestOwn>& out = leads.longest;
    const auto keep = [&](LongestOwn&& longest, size_t row) {
      if (longest.lead.middle < kLeastLead * lead.span_ns) return;
      describe(units[lead.ranks[row].process], longest);
      if (longest.lead.middle >= kShare * lead.span_ns) out.push_back(std::move(longest));
    };
    for (const Culprit& culprit : culprits(lead)) {
      LongestOwn longest;
      longest.pattern = culprit.pattern;
      longest.lead = culprit.cost;
      longest.per_step_ns = culprit.per_step_ns;
      keep(std::move(longest), culprit.row);
    }
    if (const auto few = few_delays(lead); few && out.empty() && !is_in_a_pause(lead, units, *few))
      keep(LongestOwn{.processes = {},
                      .pattern = {.first = few->steps.front(), .last = few->steps.back(), .late = few->steps},
                      .lead = {few->total_ns, few->total_ns, few->total_ns},
                      .per_step_ns = few->worst_ns},
           few->row);
    if (out.empty()) leads.seldom = seldom(lead, units);
    return leads;
  }

  bool is_in_a_pause(const DelayCost& lead, const std::vector<std::vector<size_t>>& units,
                     const FewDelays& few) const {
    const Series& pause = pauses_[ranks_[units[lead.ranks[few.row].process].front()].group];
    return std::any_of(few.steps.begin(), few.steps.end(), [&](size_t step) {
      return pause[step] > kSinglePause * lead.ranks[few.row].by_step[step];
    });
  }

  // The first row leads by most.
  std::optional<Turns> seldom(const DelayCost& lead, const std::vector<std::vector<size_t>>& units) const {
    double all = 0;
    for (const RankCost& row : lead.ranks) {
      for (float ns : row.by_step) all += static_cast<double>(ns);
    }
    const RankCost& first = lead.ranks.front();
    const std::vector<size_t>& unit = units[first.process];
    const Pattern pattern = find_pattern(first.by_step, lead.first);
    double its = 0;
    for (size_t step : pattern.late) its += static_cast<double>(first.by_step[step]);
    if (unit.size() > 1 || its < kNearlyAll * all) return std::nullopt;
    const Rank& rank = ranks_[unit.front()];
    its = std::min(its * std::min(believed(unit.front(), unit, pattern), 1.0),
                   beyond_usual(rank, &Rank::own, pattern));
    if (its < std::max(kLeastLead * lead.span_ns, kLeastTotalNs)) return std::nullopt;
    return Turns{.total_ns = its,
                 .steps = pattern.late.size(),
                 .ranks = 1,
                 .one = true,
                 .costliest = {{rank.process, {its, its, its}}}};
  }

  // What the others lost is no more than what its ranks have beyond their own usual steps either: that others
  // work less where they wait is part of the lead. Of a host half of the ranks must have it, and two: some
  // wait for the others, but where one alone works longer, or well longer than they, the host does not.
  void describe(const std::vector<size_t>& unit, LongestOwn& longest) const {
    std::vector<double> shares;  // of the lead, by rank
    for (size_t rank : unit) {
      longest.processes.push_back(ranks_[rank].process);
      const double beyond = beyond_usual(ranks_[rank], &Rank::own, longest.pattern);
      shares.push_back(std::min(beyond / longest.lead.middle, believed(rank, unit, longest.pattern)));
    }
    const size_t without = std::min(shares.size() / 2, std::max<size_t>(shares.size(), 2) - 2);
    const auto least = shares.begin() + static_cast<std::ptrdiff_t>(without);
    std::nth_element(shares.begin(), least, shares.end());
    const double most = *std::max_element(least, shares.end());
    const double share = unit.size() == 1 || most <= kUnlike * *least ? std::min(*least, 1.0) : 0;
    for (double* ns : {&longest.lead.low, &longest.lead.middle, &longest.lead.high, &longest.per_step_ns})
      *ns *= share;
    const Rank& first = ranks_[unit.front()];
    longest.op = times_[first.process].order[first.begins[longest.pattern.first]];
    // A host that waits for its own GPU takes longer between calls, and one that others wait for less exposes
    // its launches: only where both show is the host slow.
    const double own = beyond_usual(first, &Rank::own, longest.pattern);
    const double host = std::min(beyond_usual(first, &Rank::host, longest.pattern),
                                 beyond_usual(first, &Rank::launch, longest.pattern));
    longest.host_share = own > 0 ? std::min(host / own, 1.0) : 0;
  }

  // How much of what a rank of the unit has beyond the others of its stage is work: all where nobody's work
  // is hidden, and elsewhere what it works longer there by the same share.
  double believed(size_t rank, const std::vector<size_t>& unit, const Pattern& pattern) const {
    std::vector<size_t> others;  // of its stage
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].group == ranks_[rank].group && std::find(unit.begin(), unit.end(), i) == unit.end())
        others.push_back(i);
    }
    double beyond = 0, open = 0, open_beyond = 0, hidden = 0;
    for (size_t step : pattern.late) {
      Series owns, opens;
      for (size_t i : others) {
        if (std::isnan(ranks_[i].own[step])) continue;
        owns.push_back(ranks_[i].own[step]);
        opens.push_back(ranks_[i].open[step]);
      }
      const auto own = static_cast<double>(ranks_[rank].own[step]),
                 its_open = static_cast<double>(ranks_[rank].open[step]);
      if (owns.empty() || std::isnan(own)) continue;
      const auto others_open = static_cast<double>(median_of(std::move(opens)));
      beyond += own - static_cast<double>(median_of(std::move(owns)));
      open += others_open;
      open_beyond += its_open - others_open;
      hidden += own - its_open;
    }
    if (beyond <= 0) return 1;
    open_beyond = std::max(open_beyond, 0.0);
    return (open_beyond + hidden * open_beyond / std::max(open + open_beyond, 1.0)) / beyond;
  }

  // In the late steps beyond the rank's median of the others; beyond the median rank where all are late.
  double beyond_usual(const Rank& rank, Series Rank::*of, const Pattern& pattern) const {
    const auto is_late = [&](size_t step) {
      return std::binary_search(pattern.late.begin(), pattern.late.end(), step);
    };
    Series usual;
    for (size_t step = costs_.first; step < steps(); ++step) {
      if (!is_late(step) && !std::isnan(rank.own[step])) usual.push_back((rank.*of)[step]);
    }
    const bool by_itself = usual.size() >= kLeastSteps;
    const float its_usual = median_of(std::move(usual));
    double sum = 0;
    for (size_t step : pattern.late) {
      Series values;
      if (!by_itself) {
        for (const Rank& other : ranks_) {
          if (!std::isnan(other.own[step])) values.push_back((other.*of)[step]);
        }
      }
      sum += static_cast<double>((rank.*of)[step] - (by_itself ? its_usual : median_of(std::move(values))));
    }
    return std::max(sum, 0.0);
  }

  const model::Job& job_;
  const DelayCost& costs_;
  std::span<const ExclusiveTimes> times_;
  std::vector<Rank> ranks_;
  std::vector<Series> pauses_;  // by group and step: beyond its usual step
};

}  // namespace

OwnLeads longest_own(const model::Job& job, const DelayCost& costs, std::span<const ExclusiveTimes> times,
                     Among among) {
  if (costs.steps.size() < costs.first + kLeastSteps) return {};
  return Comparison(job, costs, times).find(among);
}

}  // namespace lockstep::analysis::straggler
