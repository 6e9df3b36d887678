// SPDX-License-Identifier: Apache-2.0
// The window of the pattern is the run of steps whose cost exceeds a quarter of the mean cost by most: a
// floor that scales with what there is, so that it finds the begin of lateness in every step as well as the
// first and the last of a few delays far apart. Inside, nearly all steps are late, or few are; few that lie
// at equal distances are periodic.
#include "analysis/straggler/cost/pattern.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/straggler/cost/chance.h"
#include "analysis/straggler/median.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr double kFloor = 0.25;      // of the mean cost: a gap of four times the usual one divides no window
constexpr double kDense = 0.75;      // of the steps of a window: nearly all
constexpr double kLateShare = 0.25;  // of what is usual: a step that is late
constexpr size_t kToTheEnd = 50;     // a window that ends within one step in so many of the end has not ended
constexpr size_t kParts = 6;         // of a window, for its trend
constexpr size_t kLeastOfTrend = 9;  // steps of a window
constexpr size_t kRising = 13;       // of their 15 pairs, those that rise: by chance, in 1 of 120 windows
constexpr double kGrown = 2;         // times that the last part costs the first one's
constexpr double kLeastGrown = 0.1;  // of the window\'s mean cost: where it began to grow
constexpr size_t kLeastEvents = 4;   // that have a period
constexpr double kRegular = 0.8;     // of the distances
constexpr double kPeriodError = 0.1;
constexpr size_t kMostMissed = 3;  // periods in one distance

double sum_of(std::span<const float> cost) { return std::accumulate(cost.begin(), cost.end(), 0.0); }

// The steps whose sum above the floor is the largest.
void find_window(std::span<const float> cost, size_t from, double floor_ns, Pattern* pattern) {
  double sum = 0, best = 0;
  size_t first = from;
  for (size_t step = from; step < cost.size(); ++step) {
    if (sum <= 0) sum = 0, first = step;
    sum += static_cast<double>(cost[step]) - floor_ns;
    if (sum <= best) continue;
    best = sum;
    pattern->first = first;
    pattern->last = step;
  }
}

// Half of all that is lost is lost in steps that cost at least so much.
double usual_cost(std::span<const float> window) {
  std::vector<float> sorted(window.begin(), window.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double half = sum_of(window) / 2;
  double sum = 0;
  for (float cost : sorted) {
    sum += static_cast<double>(cost);
    if (sum >= half) return static_cast<double>(cost);
  }
  return 0;
}

double share_above(std::span<const float> window, double least_ns) {
  const auto above = std::count_if(window.begin(), window.end(),
                                   [&](float cost) { return static_cast<double>(cost) >= least_ns; });
  return static_cast<double>(above) / static_cast<double>(window.size());
}

std::vector<double> parts_of(std::span<const float> window) {
  std::vector<double> means;
  for (size_t i = 0; i < kParts; ++i) {
    const size_t begin = window.size() * i / kParts, end = window.size() * (i + 1) / kParts;
    means.push_back(sum_of(window.subspan(begin, end - begin)) / static_cast<double>(end - begin));
  }
  return means;
}

bool grows(std::span<const float> window) {
  if (window.size() < kLeastOfTrend) return false;
  const std::vector<double> parts = parts_of(window);
  size_t rising = 0;
  for (size_t a = 0; a < kParts; ++a) {
    for (size_t b = a + 1; b < kParts; ++b) rising += parts[b] > parts[a];
  }
  const auto second_half = window.subspan(window.size() / 2);
  return rising >= kRising && parts.back() >= kGrown * parts.front() &&
         share_above(second_half, kLateShare * sum_of(window) / static_cast<double>(window.size())) >= kDense;
}

// Noise at the edges of the window is no part of it.
void mark_late(std::span<const float> cost, double least_ns, Pattern* pattern) {
  pattern->least_ns = least_ns;
  for (size_t step = pattern->first; step <= pattern->last; ++step) {
    if (static_cast<double>(cost[step]) >= least_ns) pattern->late.push_back(step);
  }
  pattern->first = pattern->late.front();
  pattern->last = pattern->late.back();
}

// Between the first steps of runs of neighboring ones.
std::vector<size_t> gaps_of(const std::vector<size_t>& late) {
  std::vector<size_t> gaps;
  size_t begin = late.empty() ? 0 : late.front();
  for (size_t i = 1; i < late.size(); ++i) {
    if (late[i] == late[i - 1] + 1) continue;
    gaps.push_back(late[i] - begin);
    begin = late[i];
  }
  return gaps;
}

// What counts as a period: one, or up to so many of them, between which some were missed.
struct Regular {
  size_t period = 0, error = 0, most = 1;

  bool has(size_t gap) const {
    const size_t whole = std::clamp<size_t>((gap + period / 2) / period, 1, most) * period;
    return (gap > whole ? gap - whole : whole - gap) <= error;
  }

  // How likely a gap is regular where each step is late with the same probability.
  double by_chance(double mean_gap) const {
    const double stays = 1 - 1 / mean_gap;
    double sum = 0;
    for (size_t gap = 1; gap <= most * period + error; ++gap) {
      if (has(gap)) sum += std::pow(stays, static_cast<double>(gap - 1)) / mean_gap;
    }
    return sum;
  }
};

// 0: none.
size_t period_of(const std::vector<size_t>& late) {
  const std::vector<size_t> gaps = gaps_of(late);
  if (gaps.size() + 1 < kLeastEvents) return 0;
  std::vector<size_t> sorted = gaps;
  const size_t period = lower_median(std::span(sorted));
  const double mean = static_cast<double>(std::accumulate(gaps.begin(), gaps.end(), size_t{0})) /
                      static_cast<double>(gaps.size());
  const auto most_error = static_cast<size_t>(kPeriodError * static_cast<double>(period));
  for (Regular regular{.period = period}; regular.most <= kMostMissed; ++regular.most) {
    for (regular.error = 0; regular.error <= most_error; ++regular.error) {
      const auto count = static_cast<size_t>(
          std::count_if(gaps.begin(), gaps.end(), [&](size_t gap) { return regular.has(gap); }));
      // One of them is the period itself.
      if (static_cast<double>(count) >= kRegular * static_cast<double>(gaps.size()) &&
          likely_as_often(count - 1, gaps.size() - 1, regular.by_chance(mean)) <= kMostLikely)
        return period;
    }
  }
  return 0;
}

}  // namespace

size_t count_events(std::span<const float> cost, size_t from, double least_ns) {
  size_t events = 0;
  for (size_t step = from; step < cost.size(); ++step) {
    const bool is_late = static_cast<double>(cost[step]) >= least_ns;
    events += is_late && (step == from || static_cast<double>(cost[step - 1]) < least_ns);
  }
  return events;
}

Pattern find_pattern(std::span<const float> cost, size_t from) {
  using Kind = Pattern::Kind;
  Pattern pattern;
  if (from >= cost.size()) return pattern;
  const double total = sum_of(cost.subspan(from));
  if (total <= 0) return pattern;
  find_window(cost, from, kFloor * total / static_cast<double>(cost.size() - from), &pattern);
  const auto window = cost.subspan(pattern.first, pattern.last - pattern.first + 1);
  const bool to_the_end = pattern.last + 1 + std::max<size_t>(1, cost.size() / kToTheEnd) >= cost.size();
  const double mean = sum_of(window) / static_cast<double>(window.size());
  if (to_the_end && grows(window)) {
    pattern.kind = Kind::kGrowing;
    find_window(cost, from, kLeastGrown * mean, &pattern);
    const size_t first = pattern.first;
    mark_late(cost, kLateShare * mean, &pattern);
    pattern.first = first;
    pattern.events = pattern.late.size();
    return pattern;
  }
  if (share_above(window, kLateShare * mean) >= kDense) {
    pattern.kind = to_the_end ? Kind::kSince : Kind::kWindow;
    mark_late(cost, kLateShare * mean, &pattern);
    pattern.events = pattern.late.size();
    return pattern;
  }
  mark_late(cost, kLateShare * usual_cost(window), &pattern);
  pattern.events = count_events(cost.first(pattern.last + 1), pattern.first, pattern.least_ns);
  pattern.period = period_of(pattern.late);
  pattern.kind = pattern.period != 0 ? Kind::kPeriodic : Kind::kTail;
  return pattern;
}

}  // namespace lockstep::analysis::straggler
