// SPDX-License-Identifier: Apache-2.0
// What communicators came to, and what the logs lack.
#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "analysis/wording/wording.h"

namespace lockstep::analysis::log_rules {
namespace {

constexpr int32_t kRanksMost = 1 << 20;

std::vector<int32_t> missing_ranks(const std::vector<const CommPart*>& parts) {
  const int32_t ranks = std::min(parts.front()->ranks, kRanksMost);
  std::vector<bool> present(static_cast<size_t>(std::max(ranks, 0)));
  for (const CommPart* part : parts) {
    if (part->rank >= 0 && part->rank < ranks) present[static_cast<size_t>(part->rank)] = true;
  }
  std::vector<int32_t> missing;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    if (!present[static_cast<size_t>(rank)]) missing.push_back(rank);
  }
  return missing;
}

bool is_stuck(const CommPart* part) {
  return part->started && !part->completed && !part->aborted && !part->ended;
}

}  // namespace

std::optional<Hit> init_stuck(const View& view) {
  Hit hit;
  for (const auto& [group, parts] : view.groups()) {
    std::vector<int32_t> stuck;
    for (const CommPart* part : parts) {
      if (!is_stuck(part)) continue;
      stuck.push_back(part->rank);
      hit.processes.insert(part->process);
      prove(view, part->first, hit);
    }
    if (stuck.empty() || !hit.what.empty()) continue;
    std::sort(stuck.begin(), stuck.end());
    const std::vector<int32_t> missing = missing_ranks(parts);
    hit.what = wording::ranks(stuck) + " began to create communicator " + group + " of " +
               wording::count(static_cast<uint64_t>(std::max(parts.front()->ranks, 0)), "rank") +
               " and did not complete it";
    if (!missing.empty())
      hit.what +=
          "; " + wording::ranks(missing) + (missing.size() == 1 ? " says" : " say") + " nothing of it";
  }
  if (hit.what.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> slow_init(const View& view) {
  constexpr double kSlowSeconds = 60;
  Hit hit;
  double slowest = 0;
  for (const CommPart& part : view.model().comms) {
    if (part.init_seconds < kSlowSeconds) continue;
    slowest = std::max(slowest, part.init_seconds);
    hit.processes.insert(part.process);
    prove(view, part.time, hit);
    if (const Fact* bootstrap = view.first(LineKind::kBootstrapTime, part.process))
      prove(view, bootstrap->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  hit.what = wording::duration(static_cast<int64_t>(std::min(slowest, 1e6) * 1e9));
  hit.effect = Effect{.value = slowest * 1e9, .unit = "ns", .low = slowest * 1e9, .high = slowest * 1e9};
  return hit;
}

std::optional<Hit> aborted(const View& view) {
  Hit hit;
  std::set<std::string> groups;
  for (const CommPart& part : view.model().comms) {
    if (!part.aborted) continue;
    groups.insert(part.group);
    hit.processes.insert(part.process);
    prove(view, part.abort, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  hit.what = wording::count(groups.size(), "communicator");
  return hit;
}

std::optional<Hit> torn_lines(const View& view) {
  constexpr double kBearable = 0.01;
  const auto& coverage = view.model().coverage;
  const auto torn = static_cast<double>(coverage.torn);
  const auto all = static_cast<double>(coverage.headed + coverage.torn);
  if (torn <= all * kBearable) return std::nullopt;
  Hit hit;
  hit.what = wording::percent(torn / all);
  hit.evidence.push_back(wording::count(coverage.torn, "line") +
                         " without a whole head, or with more than one");
  return hit;
}

std::optional<Hit> repeated_lines(const View& view) {
  if (view.model().coverage.repeated == 0) return std::nullopt;
  Hit hit;
  hit.what = wording::count(view.model().coverage.repeated, "line");
  hit.evidence.push_back("lines end in `[repeated ...x across cluster]`");
  return hit;
}

std::optional<Hit> ranks_without_log(const View& view) {
  const std::vector<const CommPart*>* largest = nullptr;
  std::string name;
  for (const auto& [group, parts] : view.groups()) {
    if (largest != nullptr && parts.front()->ranks <= largest->front()->ranks) continue;
    largest = &parts;
    name = group;
  }
  if (largest == nullptr || std::any_of(largest->begin(), largest->end(), is_stuck)) return std::nullopt;
  const std::vector<int32_t> missing = missing_ranks(*largest);
  if (missing.empty()) return std::nullopt;
  Hit hit;
  hit.ranks = missing;
  hit.what = "no log of " + wording::ranks(missing) + " of communicator " + name;
  prove(view, largest->front()->first, hit);
  return hit;
}

}  // namespace lockstep::analysis::log_rules
