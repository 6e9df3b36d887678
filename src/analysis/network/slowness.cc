// SPDX-License-Identifier: Apache-2.0
#include "analysis/network/slowness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

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

// By how much, as a logarithm, the rates that are not low scatter around `usual`: three quarters of them by less.
double scatter(const std::vector<double>& rates, double usual) {
  std::vector<double> distances;
  for (double rate : rates) {
    if (rate >= kSlow * usual) distances.push_back(std::abs(std::log(rate / usual)));
  }
  return quantile(distances, 0.75);
}

void compare_alike(const std::vector<const Link*>& pairs, std::vector<Comparison>& out) {
  if (pairs.size() <= kLeastOthers) return;
  std::vector<double> rates;
  for (const Link* pair : pairs) rates.push_back(pair->rate());
  double usual = quantile(rates, 0.5);
  double least = std::min(kSlow, std::exp(-kScatters * scatter(rates, usual))) * usual;
  for (size_t i = 0; i < pairs.size(); ++i) {
    Comparison of{.pair = *pairs[i], .usual_rate = usual, .others = pairs.size() - 1};
    double highest = rates[i] * (1 + 3 * pairs[i]->relative_error());
    of.slow = rates[i] < least && highest < (1 + kSlow) / 2 * usual;
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
  // Alike: communicators of one size, transfers of about one size.
  std::map<std::pair<int32_t, int>, std::vector<const Link*>> alike;
  for (const Link& pair : pairs) {
    if (measured(pair))
      alike[{job.comms[pair.comm].ranks, std::bit_width(pair.bytes / pair.steps)}].push_back(&pair);
  }
  std::vector<Comparison> all;
  for (const auto& [kind, of_kind] : alike) compare_alike(of_kind, all);
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
