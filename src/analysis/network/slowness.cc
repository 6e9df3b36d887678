// SPDX-License-Identifier: Apache-2.0
#include "analysis/network/slowness.h"

#include <algorithm>
#include <map>

namespace lockstep::analysis::network {
namespace {

// Below that a pair's rate is start-up time and chance.
constexpr uint64_t kLeastBytes = 1 << 20;
constexpr uint64_t kLeastSteps = 16;
constexpr size_t kLeastOthers = 3;
// Routes of one network differ by less.
constexpr double kSlow = 0.7;

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool measured(const Link& pair) {
  return pair.bytes >= kLeastBytes && pair.steps >= kLeastSteps && pair.busy_ns > 0 && pair.source >= 0 &&
         pair.target >= 0;
}

void compare_comm(const std::vector<const Link*>& pairs, std::vector<Comparison>& out) {
  if (pairs.size() <= kLeastOthers) return;
  std::vector<double> rates, sizes;
  for (const Link* pair : pairs) {
    rates.push_back(pair->rate());
    sizes.push_back(static_cast<double>(pair->bytes) / static_cast<double>(pair->steps));
  }
  double usual = median(rates), usual_size = median(sizes);
  for (size_t i = 0; i < pairs.size(); ++i) {
    // Small transfers are slow because they are small.
    if (sizes[i] * 2 < usual_size) continue;
    Comparison of{.pair = *pairs[i], .usual_rate = usual, .others = pairs.size() - 1};
    double highest = rates[i] * (1 + 3 * pairs[i]->relative_error());
    of.slow = rates[i] < kSlow * usual && highest < (1 + kSlow) / 2 * usual;
    out.push_back(of);
  }
}

}  // namespace

double Comparison::lost_ns() const {
  double own = static_cast<double>(pair.busy_ns) / pair.lanes;
  return own * ranks * std::max(0.0, 1 - pair.rate() / usual_rate);
}

std::vector<Comparison> compare(const model::Job& job, const std::vector<Link>& links) {
  std::vector<Link> pairs = network::pairs(links);
  std::map<uint32_t, std::vector<const Link*>> by_comm;
  for (const Link& pair : pairs) {
    if (measured(pair)) by_comm[pair.comm].push_back(&pair);
  }
  std::vector<Comparison> all;
  for (const auto& [comm, of_comm] : by_comm) compare_comm(of_comm, all);
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
