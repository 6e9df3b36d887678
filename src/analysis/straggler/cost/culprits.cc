// SPDX-License-Identifier: Apache-2.0
// A rank costs the others what they would have gained had it come when the next latest came. What many ranks
// are late by together, as noise, is nobody's cost then; but of few ranks, or of all of a host, that are late
// together, each hides the others. So all are suspects at first who cost enough beyond the ranks that come
// after as many as may be named. As long as one of them does not stand out against those who are no suspects,
// the weakest is let go, and the others are judged anew.
//
// By arrivals of hosts alone a rank that waited for a late one, in an operation whose end nobody has seen,
// may look late itself, later in the step. Who is late only in steps in which a costlier rank was late before
// is not a suspect.
//
// Who stands out has cost the run a share that matters; costs more than the costliest rank that is not named
// whichever steps are drawn, or in nearly every step, and well more in all; and is late too often to be so by
// chance: had each late arrival befallen any of the ranks alike, as hiccups do, so many would hardly have
// been one rank's. The latter counts events, not their cost: three delays of a second are a fact, and no
// habit.
#include "analysis/straggler/cost/culprits.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/straggler/cost/chance.h"
#include "analysis/straggler/median.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr size_t kMostNamed = 32;
constexpr double kWithOthers = 0.5;  // of what is worth a name, by who is late together with somebody who is
constexpr double kTogether = 0.75;   // of a rank's late steps, with another
constexpr double kEcho =
    0.25;  // of what the rank cost with which it is late: less may be left of waiting for it
constexpr double kFollowing = 0.9;   // of what a rank cost, in steps in which a costlier one was late before
constexpr double kTie = 0.5;         // how often one of two that cost alike costs more
constexpr double kRegularGap = 0.2;  // how often a distance is near that before it by chance
constexpr double kMuch = 2;          // times the least that counts

using Series = std::vector<float>;

// How likely one of `ranks` ranks is late on `of_one` of `occasions` or more, if on each any is with the same
// probability.
double chance(size_t of_one, size_t occasions, double probability, size_t ranks) {
  if (ranks < 2) return 1;
  return std::min(1.0, likely_as_often(of_one, occasions, probability) * static_cast<double>(ranks));
}

// In most of the steps in which one is late the other is, too.
bool is_late_within(const Culprit& one, const Culprit& other) {
  const std::vector<size_t>&steps = one.pattern.late, &others = other.pattern.late;
  const auto both = std::count_if(steps.begin(), steps.end(), [&](size_t step) {
    return std::binary_search(others.begin(), others.end(), step);
  });
  return steps.size() >= kLeastSteps &&
         static_cast<double>(both) >= kTogether * static_cast<double>(steps.size());
}

class Trial {
 public:
  explicit Trial(const DelayCost& costs)
      : costs_(costs),
        suspected_(costs.ranks.size()),
        follows_(costs.ranks.size()),
        together_(costs.ranks.size()) {}

  std::vector<Culprit> run() {
    std::vector<size_t> suspects = first_suspects();
    while (!suspects.empty()) {
      std::vector<Culprit> named = judge(suspects);
      const auto together = static_cast<size_t>(std::count(together_.begin(), together_.end(), true));
      if (named.size() == suspects.size() && (named.size() + together) * 2 <= costs_.compared_ranks) {
        doubt(named);
        return named;
      }
      let_go(named, &suspects);
    }
    return {};
  }

 private:
  size_t steps() const { return costs_.steps.size(); }
  const Series& cost_of(size_t row) const { return costs_.ranks[row].by_step; }
  double least_total_ns() const { return std::max(kShare * costs_.span_ns, kLeastNamedNs); }

  // By step, what the rank lost that comes after as many as may be named.
  Series reference() const {
    const size_t most = std::min(kMostNamed, std::max<size_t>(costs_.compared_ranks / 2, 1));
    Series out(steps());
    Series values;
    for (size_t step = costs_.first; step < steps(); ++step) {
      values.assign(1, costs_.others[step]);
      for (const RankCost& rank : costs_.ranks) values.push_back(rank.by_step[step]);
      if (most >= values.size()) continue;
      std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(most), values.end(),
                       std::greater<>());
      out[step] = values[most];
    }
    return out;
  }

  double beyond(size_t row, const Series& other) const {
    double sum = 0;
    for (size_t step = costs_.first; step < steps(); ++step)
      sum += std::max(static_cast<double>(cost_of(row)[step] - other[step]), 0.0);
    return sum;
  }

  // The costliest first.
  std::vector<size_t> first_suspects() {
    const Series usual = reference();
    std::vector<std::pair<double, size_t>> by_cost;
    for (size_t i = 0; i < costs_.ranks.size(); ++i) {
      const double cost = beyond(i, usual);
      if (cost >= kWithOthers * least_total_ns()) by_cost.emplace_back(cost, i);
    }
    std::sort(by_cost.begin(), by_cost.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    if (by_cost.size() > kMostNamed) by_cost.resize(kMostNamed);
    std::vector<size_t> suspects;
    for (size_t i = 0; i < by_cost.size(); ++i) {
      const size_t row = by_cost[i].second;
      follows_[row] = std::any_of(by_cost.begin(), by_cost.begin() + static_cast<ptrdiff_t>(i),
                                  [&](const auto& costlier) { return follows(row, costlier.second); });
      if (!follows_[row]) suspects.push_back(row);
    }
    return suspects;
  }

  // Whether a rank is late where another had been late before, and by more. Which of two whose clocks do not
  // compare was the first is not known: of those that exchange messages, the costlier.
  bool follows(size_t row, size_t other) const {
    const RankCost &rank = costs_.ranks[row], &before = costs_.ranks[other];
    if (costs_.timed) return false;
    const bool compares = rank.clock == before.clock;
    if (!compares && !exchange(rank, before)) return false;
    double all = 0, after = 0;
    for (size_t step = costs_.first; step < steps(); ++step) {
      const double cost = static_cast<double>(rank.by_step[step]);
      all += cost;
      if (rank.by_step[step] <= before.by_step[step] &&
          (!compares || rank.late_ns[step] > before.late_ns[step]))
        after += cost;
    }
    return after >= kFollowing * all;
  }

  static bool exchange(const RankCost& rank, const RankCost& other) {
    return std::find(rank.partners.begin(), rank.partners.end(), other.process) != rank.partners.end();
  }

  void doubt(std::vector<Culprit>& named) const {
    if (costs_.timed) return;
    for (Culprit& one : named) {
      for (const Culprit& other : named) {
        const RankCost &rank = costs_.ranks[one.row], &partner = costs_.ranks[other.row];
        if (rank.clock != partner.clock && (exchange(rank, partner) || exchange(partner, rank)) &&
            are_late_together(one, other))
          one.either = std::max(one.either.value_or(0), other.row);
      }
    }
  }

  // The two largest losses of each step among those who are no suspects.
  void rank_the_rest(const std::vector<size_t>& suspects) {
    std::fill(suspected_.begin(), suspected_.end(), false);
    for (size_t row : suspects) suspected_[row] = true;
    latest_ = costs_.others;
    second_.assign(steps(), 0);
    for (size_t i = 0; i < costs_.ranks.size(); ++i) {
      if (!is_rest(i)) continue;
      for (size_t step = 0; step < steps(); ++step) {
        const float cost = cost_of(i)[step];
        second_[step] = std::max(second_[step], std::min(cost, latest_[step]));
        latest_[step] = std::max(latest_[step], cost);
      }
    }
  }

  bool is_rest(size_t row) const { return !suspected_[row] && !follows_[row] && !together_[row]; }

  // The culprits among them, in their order. Of ranks that are late together all are at fault, though one of
  // them costs less, or once more besides: were it let go, it would hide the others.
  std::vector<Culprit> judge(const std::vector<size_t>& suspects) {
    rank_the_rest(suspects);
    std::vector<Culprit> measured;
    for (size_t row : suspects) measured.push_back(measure(row));
    std::vector<bool> apart;
    for (const Culprit& culprit : measured) apart.push_back(stands_apart(culprit));
    std::vector<Culprit> named;
    for (size_t i = 0; i < measured.size(); ++i) {
      bool is_with = false, is_within = false, is_echo = false;
      for (size_t other = 0; other < measured.size(); ++other) {
        if (other == i || !apart[other] || !costs(measured[other], 1)) continue;
        is_within = is_within || is_late_within(measured[i], measured[other]);
        if (!are_late_together(measured[i], measured[other])) continue;
        is_with = true;
        is_echo = is_echo || measured[i].cost.middle < kEcho * measured[other].cost.middle;
      }
      if (!is_echo && (is_with ? costs(measured[i], kWithOthers) : apart[i] && costs(measured[i], 1)))
        named.push_back(measured[i]);
      else
        together_[measured[i].row] = is_within;
    }
    if (named.empty()) std::fill(together_.begin(), together_.end(), false);
    return named;
  }

  // This share of what is worth a name: in all, and a late step.
  bool costs(const Culprit& culprit, double share) const {
    return culprit.cost.middle >= share * least_total_ns() &&
           culprit.per_step_ns >= share * kShare * costs_.usual_step_ns;
  }

  Culprit measure(size_t row) const {
    Culprit culprit;
    culprit.row = row;
    Series own(steps());
    for (size_t step = costs_.first; step < steps(); ++step)
      own[step] = std::max(cost_of(row)[step] - latest_[step], 0.0f);
    culprit.pattern = find_pattern(own, costs_.first);
    const Pattern& pattern = culprit.pattern;
    if (pattern.late.empty()) return culprit;
    const auto window = [&](const Series& series) {
      return std::span(series).subspan(pattern.first, pattern.last - pattern.first + 1);
    };
    const Resampler resampler(window(own).size());
    culprit.cost = resampler.total(window(own));
    const Series next = costliest_of_the_rest(pattern);
    culprit.next = resampler.total(window(next));
    for (size_t step = 0; step < steps(); ++step) own[step] -= next[step];
    culprit.is_apart = resampler.total(window(own)).low > 0 || is_mostly_above(window(own));
    std::vector<float> late;
    for (size_t step : pattern.late) late.push_back(cost_of(row)[step]);
    culprit.per_step_ns = static_cast<double>(upper_median(std::span(late)));
    for (float cost : window(cost_of(row))) culprit.total_ns += static_cast<double>(cost);
    return culprit;
  }

  // Of the steps that differ, nearly all: few large ones of another do not hide what a rank costs in each
  // step.
  static bool is_mostly_above(std::span<const float> apart) {
    const auto above = std::count_if(apart.begin(), apart.end(), [](float ns) { return ns > 0; });
    const auto below = std::count_if(apart.begin(), apart.end(), [](float ns) { return ns < 0; });
    return likely_as_often(static_cast<size_t>(above), static_cast<size_t>(above + below), kTie) <=
           kMostLikely;
  }

  // By step, what it cost beyond the others who are no suspects.
  Series costliest_of_the_rest(const Pattern& pattern) const {
    Series best(steps()), own(steps());
    double most = 0;
    for (size_t i = 0; i < costs_.ranks.size(); ++i) {
      if (!is_rest(i)) continue;
      double sum = 0;
      for (size_t step = pattern.first; step <= pattern.last; ++step) {
        const float cost = cost_of(i)[step];
        own[step] = cost >= latest_[step] ? cost - second_[step] : 0;
        sum += static_cast<double>(own[step]);
      }
      if (sum <= most) continue;
      most = sum;
      best.swap(own);
    }
    return best;
  }

  // From whoever is no suspect.
  bool stands_apart(const Culprit& culprit) const {
    const Pattern& pattern = culprit.pattern;
    if (pattern.late.size() < kLeastSteps) return false;
    return culprit.is_apart && culprit.cost.middle >= kStandOut * culprit.next.middle && is_a_habit(culprit);
  }

  // Against those who are no suspects: of ranks that are late together, as all of a host, none is the others'
  // chance. Who is late in each step is late by more than the least that counts, as a healthy rank is not:
  // either tells.
  bool is_a_habit(const Culprit& culprit) const {
    const Pattern& pattern = culprit.pattern;
    if (by_chance(culprit, pattern.least_ns, pattern.events) <= kMostLikely) return true;
    if (!is_in_each_step(pattern)) return false;
    const double more_ns = kMuch * pattern.least_ns;
    const auto times = std::count_if(pattern.late.begin(), pattern.late.end(), [&](size_t step) {
      return static_cast<double>(cost_of(culprit.row)[step]) >= more_ns;
    });
    return by_chance(culprit, more_ns, static_cast<size_t>(times)) <= kMostLikely;
  }

  static bool is_in_each_step(const Pattern& pattern) { return pattern.events == pattern.late.size(); }

  // How likely it would be late `events` times by at least `least_ns`.
  double by_chance(const Culprit& culprit, double least_ns, size_t events) const {
    const Pattern& pattern = culprit.pattern;
    const auto times_late = [&](const Series& cost) {
      return is_in_each_step(pattern) ? late_steps(cost, least_ns)
                                      : count_events(cost, costs_.first, least_ns);
    };
    Series latest = costs_.others;
    size_t all = times_late(latest);
    size_t ranks = costs_.compared_ranks;
    for (size_t i = 0; i < costs_.ranks.size(); ++i) {
      const Series& cost = cost_of(i);
      const bool is_other_suspect = suspected_[i] && i != culprit.row;
      ranks -= is_other_suspect;
      if (is_other_suspect) continue;
      if (i != culprit.row) all += times_late(cost);
      for (size_t step = 0; step < steps(); ++step) latest[step] = std::max(latest[step], cost[step]);
    }
    const size_t occasions = std::max(times_late(latest), events);
    const double probability =
        static_cast<double>(all + events) / static_cast<double>(occasions) / static_cast<double>(ranks);
    double likely = chance(events, occasions, probability, ranks);
    if (pattern.kind == Pattern::Kind::kPeriodic)
      likely *= std::pow(kRegularGap, static_cast<double>(pattern.events - 2));
    return likely;
  }

  size_t late_steps(const Series& cost, double least_ns) const {
    return static_cast<size_t>(std::count_if(cost.begin() + static_cast<ptrdiff_t>(costs_.first), cost.end(),
                                             [&](float ns) { return static_cast<double>(ns) >= least_ns; }));
  }

  // The cheapest of those who do not stand out, or of all if they are too many.
  static void let_go(const std::vector<Culprit>& named, std::vector<size_t>* suspects) {
    const auto is_named = [&](size_t row) {
      return std::any_of(named.begin(), named.end(), [&](const Culprit& c) { return c.row == row; });
    };
    const bool all = named.size() == suspects->size();
    for (size_t i = suspects->size(); i-- > 0;) {
      if (!all && is_named((*suspects)[i])) continue;
      suspects->erase(suspects->begin() + static_cast<ptrdiff_t>(i));
      return;
    }
  }

  const DelayCost& costs_;
  // follows: another's lateness explains its own; together: late in steps of who is named, and not worth a
  // name.
  std::vector<bool> suspected_, follows_, together_;
  Series latest_, second_;  // by step
};

}  // namespace

bool are_late_together(const Culprit& a, const Culprit& b) {
  return is_late_within(a, b) && is_late_within(b, a);
}

std::vector<Culprit> culprits(const DelayCost& costs) {
  if (costs.steps.size() < costs.first + kLeastSteps) return {};
  return Trial(costs).run();
}

std::vector<Interval> own_costs(const DelayCost& costs) {
  const size_t steps = costs.steps.size();
  std::vector<Interval> out(costs.ranks.size());
  if (steps <= costs.first) return out;
  Series latest = costs.others, second(steps);
  for (const RankCost& rank : costs.ranks) {
    for (size_t step = 0; step < steps; ++step) {
      second[step] = std::max(second[step], std::min(rank.by_step[step], latest[step]));
      latest[step] = std::max(latest[step], rank.by_step[step]);
    }
  }
  const Resampler resampler(steps - costs.first);
  for (size_t i = 0; i < out.size(); ++i) {
    Series own;
    for (size_t step = costs.first; step < steps; ++step) {
      const float cost = costs.ranks[i].by_step[step];
      const float next = std::max(second[step], costs.uneven_ns[step]);
      own.push_back(cost >= latest[step] ? std::max(cost - next, 0.0f) : 0);
    }
    out[i] = resampler.total(own);
  }
  return out;
}

}  // namespace lockstep::analysis::straggler
