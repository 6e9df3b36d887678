// SPDX-License-Identifier: Apache-2.0
// What launchers and programs say of processes that ended or did not come.
#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "base/text/wording.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::Captures;
using readers::nccl_log::Pattern;
using readers::nccl_log::to_int;

// PyTorch's watchdog ends its process by SIGABRT, and a launcher those that are left by SIGTERM.
bool is_consequence(const View& view, const std::string& text) {
  Captures captures;
  static const Pattern kExit("(exitcode: {int})"), kCode("return code = {int}"), kDied("exit code: {int}"),
      kSignal("Signal {int} (");
  for (const Pattern* pattern : {&kExit, &kCode, &kDied, &kSignal}) {
    const size_t at = text.find(pattern->head());
    if (at == std::string::npos || !pattern->match(std::string_view(text).substr(at), captures)) continue;
    const int64_t code = to_int(captures[0]);
    const bool gave_up = !view.torch().is_silent() && (!view.torch().lines(TorchRemark::kTimeout).empty() ||
                                                       !view.torch().lines(TorchRemark::kTakenDown).empty());
    return code == 0 || code == -15 || code == 15 || code == -2 || (gave_up && (code == -6 || code == 1));
  }
  return false;
}

// The numbers in "3, 7" or "{3, 7}".
void add_ranks(const std::string& list, std::set<int32_t>& ranks) {
  constexpr size_t kRanksMost = 1 << 16;
  for (size_t at = 0; at < list.size() && ranks.size() < kRanksMost;) {
    const size_t end = std::min(list.find_first_not_of("0123456789", at), list.size());
    if (end > at && end - at < 9)
      ranks.insert(static_cast<int32_t>(to_int(std::string_view(list).substr(at, end - at))));
    at = end + 1;
  }
}

}  // namespace

std::optional<Hit> process_ended(const View& view) {
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kProcessEnded)) {
    if (is_consequence(view, fact->value(0))) continue;
    if (hit.what.empty()) hit.what = fact->value(0);
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> barrier_missed(const View& view) {
  Hit hit;
  std::set<int32_t> ranks;
  for (const Fact* fact : view.facts(LineKind::kBarrierMissed)) {
    add_ranks(fact->value(0), ranks);
    if (hit.what.empty())
      hit.what = " did not come to a barrier within " +
                 wording::duration(std::clamp<int64_t>(to_int(fact->value(1)), 0, 1'000'000'000) * 1'000'000);
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty() || ranks.empty()) return std::nullopt;
  hit.ranks.assign(ranks.begin(), ranks.end());
  hit.what = wording::ranks(hit.ranks) + hit.what;
  return hit;
}

std::optional<Hit> analyser_misses(const View& view) {
  Hit hit;
  std::set<int32_t> ranks;
  for (const Fact* fact : view.facts(LineKind::kRanksMissing)) {
    add_ranks(fact->value(0), ranks);
    prove(view, fact->first, hit);
  }
  if (hit.evidence.empty() || ranks.empty()) return std::nullopt;
  hit.ranks.assign(ranks.begin(), ranks.end());
  hit.what = wording::ranks(hit.ranks);
  return hit;
}

}  // namespace lockstep::analysis::log_rules
