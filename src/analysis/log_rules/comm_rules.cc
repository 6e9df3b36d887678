// SPDX-License-Identifier: Apache-2.0
// What communicators, and the frameworks above them, came to; and what the logs lack.
#include <algorithm>
#include <map>

#include "analysis/log_rules/rules.h"
#include "analysis/wording/wording.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::to_int;

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

// How far each rank of a process group had come when the watchdog looked.
struct Progress {
  int64_t enqueued = -1;
  const Fact* proof = nullptr;
};
using Group = std::map<int32_t, Progress>;  // by rank

std::map<std::string, Group> progress_by_group(const View& view) {
  std::map<std::string, Group> groups;
  for (const Fact* fact : view.facts(LineKind::kWorkProgress)) {
    Progress& progress = groups[fact->value(0)][static_cast<int32_t>(to_int(fact->value(1)))];
    const int64_t enqueued = to_int(fact->value(2));
    if (enqueued > progress.enqueued) progress = {enqueued, fact};
  }
  return groups;
}

// Ranks that had enqueued less than the furthest of their process group.
struct Behind {
  std::vector<int32_t> ranks;
  Hit hit;
};
std::optional<Behind> behind(const View& view) {
  if (view.facts(LineKind::kWatchdog).empty()) return std::nullopt;
  for (const auto& [name, group] : progress_by_group(view)) {
    int64_t furthest = -1;
    for (const auto& [rank, progress] : group) furthest = std::max(furthest, progress.enqueued);
    Behind found;
    const Fact* ahead = nullptr;
    for (const auto& [rank, progress] : group) {
      if (progress.enqueued == furthest) {
        ahead = progress.proof;
      } else {
        found.ranks.push_back(rank);
        prove(view, progress.proof->first, found.hit);
      }
    }
    if (found.ranks.empty()) continue;
    const size_t others = group.size() - found.ranks.size();
    found.hit.ranks = found.ranks;
    found.hit.what = wording::ranks(found.ranks) + " had not enqueued work " + std::to_string(furthest) +
                     " of process group " + name + ", which " + wording::count(others, "rank") +
                     " had, when PyTorch's watchdog gave up";
    if (ahead != nullptr) prove(view, ahead->first, found.hit);
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Hit> behind_at_timeout(const View& view) {
  auto found = behind(view);
  if (!found) return std::nullopt;
  return std::move(found->hit);
}

std::optional<Hit> timeout(const View& view) {
  const auto timeouts = view.facts(LineKind::kWatchdog);
  if (timeouts.empty() || behind(view)) return std::nullopt;
  Hit hit;
  std::set<int32_t> ranks;
  for (const Fact* fact : timeouts) {
    ranks.insert(static_cast<int32_t>(to_int(fact->value(0))));
    add(view, *fact, hit);
  }
  hit.what = "PyTorch's watchdog gave up on work " + timeouts.front()->value(1) + " (" +
             timeouts.front()->value(2) + ") of " + wording::ranks({ranks.begin(), ranks.end()}) +
             "; which rank is behind, these logs do not tell";
  return hit;
}

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
    prove(view, part.first, hit);
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
