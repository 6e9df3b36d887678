// SPDX-License-Identifier: Apache-2.0
#include "analysis/network/slowness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

namespace lockstep::analysis::network {
namespace {

// Below that a pair's rate is start-up time and chance.
constexpr uint64_t kLeastBytes = 1 << 20;
constexpr uint64_t kLeastSteps = 16;
constexpr size_t kLeastOthers = 3;
// Routes of one network differ by less.
constexpr double kSlow = 0.7;
// A pair is slow only where its rate is as far from the usual as this many times what is usual to differ.
constexpr double kScatters = 3;

double quantile(std::vector<double> values, double part) {
  auto at = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * part);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

bool measured(const Link& pair) {
  return pair.bytes >= kLeastBytes && pair.steps >= kLeastSteps && pair.busy_ns > 0 && pair.source >= 0 &&
         pair.target >= 0;
}

// By how much, as a logarithm, the rates that are not slow fall behind `usual`: three quarters of them by less. That some
// are faster says nothing of a slow one.
double scatter(const std::vector<double>& rates, double usual) {
  std::vector<double> behind;
  for (double rate : rates) {
    if (rate >= kSlow * usual && rate <= usual) behind.push_back(std::log(usual / rate));
  }
  return quantile(behind, 0.75);
}

// What pairs that carry the like reach.
struct Usual {
  explicit Usual(const std::vector<double>& rates)
      : rate(quantile(rates, 0.5)),
        least(std::min(kSlow, std::exp(-kScatters * scatter(rates, rate))) * rate) {}
  bool calls_slow(const Link& pair) const {
    double highest = pair.rate() * (1 + 3 * pair.relative_error());
    return pair.rate() < least && highest < (1 + kSlow) / 2 * rate;
  }
  double rate;
  double least;  // below it a pair is slow
};

// Fills in what each of `all` is held against; groups are positions in it.
class Judge {
 public:
  Judge(const model::Job& job, std::vector<Comparison>& all) : job_(job), all_(all) {}

  void hold_against_median(const std::vector<size_t>& group) {
    const Usual usual(rates(group));
    for (size_t i : group) {
      all_[i].usual_rate = usual.rate;
      all_[i].others = group.size() - 1;
      all_[i].slow = usual.calls_slow(all_[i].pair);
    }
  }

  void hold_places_against_rest(const std::vector<size_t>& group) {
    std::vector<double> sorted = rates(group);
    std::sort(sorted.begin(), sorted.end());
    for (Place::Kind kind : kPlaceKinds) {
      std::map<Place, std::vector<size_t>> through;
      for (size_t i : group) {
        for (const Place& place : places(job_, all_[i].pair, kind)) through[place].push_back(i);
      }
      for (const auto& [place, inside] : through) {
        const size_t outside = group.size() - inside.size();
        if (inside.size() >= 2 && outside >= kLeastOthers) compare(inside, sorted);
      }
    }
  }

 private:
  // `sorted` are the rates of those inside and of all the others.
  void compare(const std::vector<size_t>& inside, const std::vector<double>& sorted) {
    // Nothing outside is as slow: what lies on slower routes than half of the others is not a slow place. All inside being
    // slower than the first of the rest means that they are what comes before it.
    const auto rest = sorted.begin() + static_cast<std::ptrdiff_t>(inside.size());
    const double least = kSlow * *rest;
    if (!std::all_of(inside.begin(), inside.end(), [&](size_t i) { return all_[i].pair.rate() < least; }))
      return;
    const std::vector<double> others(rest, sorted.end());
    const Usual usual(others);
    if (!std::all_of(inside.begin(), inside.end(), [&](size_t i) { return usual.calls_slow(all_[i].pair); }))
      return;
    for (size_t i : inside) {
      all_[i].usual_rate = usual.rate;
      all_[i].others = others.size();
      all_[i].slow = true;
    }
  }

  std::vector<double> rates(const std::vector<size_t>& group) const {
    std::vector<double> rates;
    for (size_t i : group) rates.push_back(all_[i].pair.rate());
    return rates;
  }

  const model::Job& job_;
  std::vector<Comparison>& all_;
};

}  // namespace

double Comparison::lost_ns() const {
  double own = static_cast<double>(pair.busy_ns) / pair.lanes;
  return own * ranks * std::max(0.0, 1 - pair.rate() / usual_rate);
}

int64_t place_number(const model::Job& job, Place::Kind kind, uint32_t process) {
  const model::JobProcess& of = job.processes[process];
  switch (kind) {
    case Place::Kind::kHost:
      return of.host;
    case Place::Kind::kRail:
      return of.row.local_rank;
    case Place::Kind::kRank:
      break;
  }
  return of.row.rank;
}

std::vector<Place> places(const model::Job& job, const Link& pair, Place::Kind kind) {
  std::vector<Place> at;
  for (uint32_t process : {pair.source_process, pair.target_process}) {
    if (process == model::kNoRow) continue;
    int64_t number = place_number(job, kind, process);
    if (number >= 0 && (at.empty() || at.front().number != number)) at.push_back({kind, number});
  }
  return at;
}

std::vector<Comparison> compare(const model::Job& job, const std::vector<Link>& links) {
  std::vector<Comparison> all;
  for (const Link& pair : network::pairs(links)) {
    if (measured(pair)) all.push_back({.pair = pair});
  }
  using Kind = std::tuple<int32_t, uint32_t, int>;  // ranks of the communicator, channels, size of transfers
  std::map<Kind, std::vector<size_t>> of_kind, of_small;
  std::map<std::pair<uint32_t, int>, std::vector<size_t>> of_comm;
  auto kind_of = [&](const Link& pair) {
    return Kind{job.comms[pair.comm].ranks, pair.lanes, std::bit_width(pair.bytes / pair.steps)};
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const Kind kind = kind_of(all[i].pair);
    of_kind[kind].push_back(i);
    of_comm[{all[i].pair.comm, std::get<2>(kind)}].push_back(i);
  }
  Judge judge(job, all);
  for (const auto& [key, group] : of_comm) {
    if (group.size() > kLeastOthers) {
      judge.hold_against_median(group);
      judge.hold_places_against_rest(group);
    } else {
      for (size_t i : group) of_small[kind_of(all[i].pair)].push_back(i);
    }
  }
  for (const auto& [kind, group] : of_small) {
    if (group.size() > kLeastOthers) judge.hold_against_median(group);
  }
  for (const auto& [kind, group] : of_kind) judge.hold_places_against_rest(group);
  std::erase_if(all, [](const Comparison& of) { return of.others == 0; });
  std::map<std::pair<int32_t, int32_t>, Comparison> best;
  for (const Comparison& of : all) {
    auto [at, is_new] = best.try_emplace({of.pair.source, of.pair.target}, of);
    if (!is_new && of.pair.bytes > at->second.pair.bytes) at->second = of;
  }
  std::vector<Comparison> comparisons;
  for (auto& [ranks, of] : best) {
    of.ranks = std::max(job.comms[of.pair.comm].ranks, 1);
    comparisons.push_back(of);
  }
  return comparisons;
}

}  // namespace lockstep::analysis::network
