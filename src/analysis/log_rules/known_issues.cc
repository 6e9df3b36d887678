// SPDX-License-Identifier: Apache-2.0
#include "analysis/log_rules/known_issues.h"

#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "model/process_group.h"

namespace lockstep::analysis::log_rules {
namespace {

constexpr KnownIssue kIssues[] = {
#define WARNED(...) {false, __VA_ARGS__},
#define WAITED(first, fixed, func, ...) {true, first, fixed, func, "", __VA_ARGS__},
#include "analysis/log_rules/known_issues.def"
#undef WAITED
#undef WARNED
};

// 0: no line says it.
int32_t release_of(const View& view) {
  int32_t least = 0;
  for (const Fact* fact : view.facts(LineKind::kVersion)) {
    const std::string version = fact->value(0);
    const int32_t release = model::parse_nccl_version(version.substr(0, version.find('+')));
    if (release > 0) least = least == 0 ? release : std::min(least, release);
  }
  return least;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Hit warned_of(const View& view, const KnownIssue& issue) {
  Hit hit;
  for (const Fact& fact : view.model().facts) {
    if (fact.is_warning && has(fact.first.text, issue.words) && has(fact.first.text, issue.also))
      add(view, fact, hit);
  }
  return hit;
}

Hit waited_in(const View& view, const KnownIssue& issue) {
  Hit hit;
  for (const Stall& stall : view.torch().stalls()) {
    if (stall.func != issue.words) continue;
    for (const TorchLine* line : stall.evidence) prove(view, line->first, hit);
  }
  return hit;
}

}  // namespace

std::span<const KnownIssue> known_issue_list() { return kIssues; }

std::vector<Hit> known_issues(const View& view) {
  const int32_t release = release_of(view);
  std::vector<Hit> hits;
  for (const KnownIssue& issue : kIssues) {
    if (release == 0 || release < issue.first || release >= issue.fixed) continue;
    Hit hit = issue.is_wait ? waited_in(view, issue) : warned_of(view, issue);
    if (hit.evidence.empty()) continue;
    // They tell what else it may be, and of whom the others do.
    hit.processes.clear();
    hit.lines.clear();
    hit.what = "NCCL " + model::nccl_version_text(release) +
               " has a known issue that fits: " + std::string(issue.what) + "; fixed in " +
               model::nccl_version_text(issue.fixed);
    hit.evidence.push_back("until then: " + std::string(issue.workaround));
    hit.evidence.emplace_back(issue.source);
    hits.push_back(std::move(hit));
  }
  return hits;
}

}  // namespace lockstep::analysis::log_rules
