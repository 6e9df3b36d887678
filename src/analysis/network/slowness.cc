// SPDX-License-Identifier: Apache-2.0
// Decides which pairs are slow. A flow is compared only with flows of the same kind of traffic, size of
// communicator, lanes and sharing of the card: anything else differs in speed for good reasons. It must be
// slower than 0.7 of the median, further off than three times the usual scatter, and longer in its long
// transfers too. A busy CPU of a proxy thread makes few transfers much longer; a bad link makes all of them
// longer.
#include "analysis/network/slowness.h"

#include <algorithm>
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
// A slow link makes its transfers longer, not a few of them much longer, as a proxy thread does that has to
// wait for its CPU. The root of what the rate has to show, for how long they take is known to within an
// eighth only.
constexpr double kLonger = 1.195;
// A pair is slow only where its rate is as far from the usual as this many times what is usual to differ.
constexpr double kScatters = 3;

double quantile(std::vector<double> values, double part) {
  auto at = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * part);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

bool measured(const Link& pair) {
  return pair.traffic.kind != 0 && pair.bytes >= kLeastBytes && pair.steps >= kLeastSteps &&
         pair.busy_ns > 0 && pair.source >= 0;
}

bool is_whole(const model::JobComm& comm) {
  return std::find(comm.members.begin(), comm.members.end(), model::kNoRow) == comm.members.end() &&
         static_cast<int64_t>(comm.members.size()) >= comm.ranks;
}

// By how much, as a logarithm, the rates that are not slow fall behind `usual`: three quarters of them by
// less. That some are faster says nothing of a slow one.
double scatter(const std::vector<double>& rates, double usual) {
  std::vector<double> behind;
  for (double rate : rates) {
    if (rate >= kSlow * usual && rate <= usual) behind.push_back(std::log(usual / rate));
  }
  return quantile(behind, 0.75);
}

// What flows that carry the like reach.
struct Usual {
  Usual(const std::vector<Comparison>& all, const std::vector<size_t>& group) {
    std::vector<double> rates, durations, errors;
    for (size_t i : group) {
      rates.push_back(all[i].pair.rate());
      durations.push_back(all[i].pair.most_ns());
      errors.push_back(all[i].pair.relative_error());
    }
    rate = quantile(rates, 0.5);
    most_ns = quantile(durations, 0.5);
    error = quantile(errors, 0.5);
    least = std::min(kSlow, std::exp(-kScatters * scatter(rates, rate))) * rate;
  }
  bool calls_slow(const Link& pair) const {
    const double highest = pair.rate() * (1 + 3 * std::hypot(pair.relative_error(), error));
    return pair.rate() < least && highest < (1 + kSlow) / 2 * rate && pair.most_ns() > kLonger * most_ns;
  }
  double rate, most_ns;
  double error;  // of one flow's rate, relative
  double least;  // below it a pair is slow
};

// Fills in what each of `all` is held against; groups are positions in it.
class Judge {
 public:
  Judge(const model::Job& job, std::vector<Comparison>& all) : job_(job), all_(all) {}

  void hold_against_median(const std::vector<size_t>& group) {
    const Usual usual(all_, group);
    for (size_t i : group) {
      all_[i].usual_rate = usual.rate;
      all_[i].others = group.size() - 1;
      all_[i].slow = usual.calls_slow(all_[i].pair);
      all_[i].sure = is_sure(all_[i], group);
    }
  }

  void hold_places_against_rest(std::vector<size_t> group) {
    std::sort(group.begin(), group.end(),
              [this](size_t a, size_t b) { return all_[a].pair.rate() < all_[b].pair.rate(); });
    for (Place::Kind kind : kPlaceKinds) {
      std::map<Place, std::vector<size_t>> through;
      for (size_t i : group) {
        for (const Place& place : places(job_, all_[i].pair, kind)) through[place].push_back(i);
      }
      for (const auto& [place, inside] : through) {
        const size_t outside = group.size() - inside.size();
        if (inside.size() >= 2 && outside >= kLeastOthers) compare(inside, group);
      }
    }
  }

 private:
  bool is_sure(const Comparison& of, const std::vector<size_t>& group) const {
    return std::any_of(group.begin(), group.end(), [&](size_t i) {
      const Link& other = all_[i].pair;
      return of.pair.rate() < kSlow * other.rate() &&
             (other.comm == of.pair.comm || is_whole(job_.comms[other.comm]));
    });
  }

  // `sorted` by rate are those inside and all the others.
  void compare(const std::vector<size_t>& inside, const std::vector<size_t>& sorted) {
    // Nothing outside is as slow: what lies on slower routes than half of the others is not a slow place. All
    // inside being slower than the first of the rest means that they are what comes before it.
    const std::vector<size_t> rest(sorted.begin() + static_cast<std::ptrdiff_t>(inside.size()), sorted.end());
    const double least = kSlow * all_[rest.front()].pair.rate();
    const Usual usual(all_, rest);
    for (size_t i : inside) {
      if (all_[i].pair.rate() >= least || !usual.calls_slow(all_[i].pair)) return;
    }
    for (size_t i : inside) {
      all_[i].usual_rate = usual.rate;
      all_[i].others = rest.size();
      all_[i].sure = (all_[i].slow && all_[i].sure) || is_sure(all_[i], rest);
      all_[i].slow = true;
    }
  }

  const model::Job& job_;
  std::vector<Comparison>& all_;
};

// What flows have in common that may be compared. The size of what takes part in an operation and how far its
// ranks are apart, the lanes, the traffic, and how many flows of it share the card at whichever end has more
// of them.
using Kind = std::tuple<int32_t, int32_t, uint32_t, model::Traffic, size_t>;

class Kinds {
 public:
  Kinds(const model::Job& job, const std::vector<Link>& flows) : job_(job) {
    for (const Link& flow : flows) {
      ++ends_[{flow.comm, flow.from, true, flow.traffic}];
      ++ends_[{flow.comm, flow.to, false, flow.traffic}];
    }
  }
  Kind of(const Link& flow) const {
    const size_t out = ends_.at({flow.comm, flow.from, true, flow.traffic});
    const size_t in = ends_.at({flow.comm, flow.to, false, flow.traffic});
    return {job_.comms[flow.comm].ranks, distance(job_.comms[flow.comm]), flow.lanes, flow.traffic,
            std::max(out, in)};
  }

 private:
  // Of neighbours, by the first two ranks that are in the run; 0: there are none. Groups of pipelines and of
  // experts may be as large and carry transfers as large, and share cards with other traffic.
  int32_t distance(const model::JobComm& comm) const {
    int32_t first = -1, at = 0;
    for (int32_t i = 0; static_cast<size_t>(i) < comm.members.size(); ++i) {
      const uint32_t row = comm.members[static_cast<size_t>(i)];
      if (row == model::kNoRow) continue;
      const int32_t rank = job_.processes[job_.members[row].process].row.rank;
      if (first >= 0) return (rank - first) / (i - at);
      first = rank;
      at = i;
    }
    return 0;
  }

  const model::Job& job_;
  std::map<std::tuple<uint32_t, int32_t, bool, model::Traffic>, size_t>
      ends_;  // rank of the communicator, sends
};

// What is well with transfers that are as large says that the way between the ranks is.
bool is_well_elsewhere(const Comparison& slow, const std::vector<Comparison>& flows) {
  return std::any_of(flows.begin(), flows.end(), [&](const Comparison& of) {
    return of.pair.bytes_each() >= slow.pair.bytes_each() && of.pair.rate() >= kSlow * of.usual_rate;
  });
}

// Of the flows from one rank to another, the one that carried most.
Comparison of_pair(const std::vector<Comparison>& flows) {
  Comparison most =
      *std::max_element(flows.begin(), flows.end(),
                        [](const Comparison& a, const Comparison& b) { return a.pair.bytes < b.pair.bytes; });
  most.slow = most.slow && !is_well_elsewhere(most, flows);
  return most;
}

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

End target_of(const Link& pair) {
  if (pair.target >= 0) return {.rank = pair.target};
  return {.comm = pair.comm, .of_comm = pair.to};
}

std::vector<Comparison> compare(const model::Job& job, const std::vector<Link>& links) {
  const std::vector<Link> flows = network::flows(links);
  const Kinds kinds(job, flows);
  std::vector<Comparison> all;
  std::map<Kind, std::vector<size_t>> of_kind, of_small;
  std::map<std::pair<uint32_t, Kind>, std::vector<size_t>> of_comm;
  for (const Link& flow : flows) {
    if (!measured(flow)) continue;
    const Kind kind = kinds.of(flow);
    of_kind[kind].push_back(all.size());
    of_comm[{flow.comm, kind}].push_back(all.size());
    all.push_back({.pair = flow, .ranks = std::max(job.comms[flow.comm].ranks, 1)});
  }
  Judge judge(job, all);
  for (const auto& [key, group] : of_comm) {
    if (group.size() > kLeastOthers) {
      judge.hold_against_median(group);
      judge.hold_places_against_rest(group);
    } else {
      std::vector<size_t>& small = of_small[key.second];
      small.insert(small.end(), group.begin(), group.end());
    }
  }
  for (const auto& [kind, group] : of_small) {
    if (group.size() > kLeastOthers) judge.hold_against_median(group);
  }
  for (const auto& [kind, group] : of_kind) judge.hold_places_against_rest(group);
  std::map<std::pair<int32_t, End>, std::vector<Comparison>> by_pair;
  for (const Comparison& of : all) {
    if (of.others > 0) by_pair[{of.pair.source, target_of(of.pair)}].push_back(of);
  }
  std::vector<Comparison> comparisons;
  for (const auto& [ranks, of] : by_pair) comparisons.push_back(of_pair(of));
  return comparisons;
}

}  // namespace lockstep::analysis::network
