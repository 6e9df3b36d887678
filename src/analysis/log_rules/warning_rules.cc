// SPDX-License-Identifier: Apache-2.0
// Warnings that are not known, and what became of the calls that printed them.
#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::to_int;

// ncclResult_t, as NCCL's documentation calls them. 6 says that the cause is elsewhere, 7 is no error.
std::string result_text(int64_t result) {
  static constexpr std::string_view kTexts[] = {"",
                                                "an error of CUDA",
                                                "an error of the system",
                                                "an internal error",
                                                "an invalid argument",
                                                "invalid usage"};
  return std::string(result > 0 && static_cast<size_t>(result) < std::size(kTexts) ? kTexts[result] : "");
}

int64_t result_of(const Fact& trace) {
  const bool has_site = trace.values.size() > 4;  // with the function in brackets
  return to_int(trace.value(has_site ? 3 : 2));
}

// When a process ends, its sockets fail: those say nothing.
bool is_of_a_failure(const Fact& trace) {
  return !result_text(result_of(trace)).empty() && trace.value(0).find("socket") == std::string::npos;
}

// What tells that something failed, or of what does no harm, and not why.
bool is_reason(const Fact& fact) {
  return fact.is_warning && fact.kind != LineKind::kProxyFailed && fact.kind != LineKind::kHelperFailed &&
         fact.kind != LineKind::kVerbsAbsent;
}

}  // namespace

// The call that warned returned an error.
std::optional<Hit> failed_warnings(const View& view) {
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kUnknownWarning)) {
    const auto traces = view.facts(LineKind::kErrorTrace, fact->process);
    const bool failed = std::any_of(traces.begin(), traces.end(), [&](const Fact* trace) {
      return !result_text(result_of(*trace)).empty() && trace->first.file == fact->first.file &&
             trace->first.line > fact->first.line;
    });
    if (!failed) continue;
    if (hit.what.empty()) hit.what = warning_text(*fact);
    add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

std::optional<Hit> bare_traces(const View& view) {
  constexpr uint64_t kLinesBetween = 16;
  Hit hit;
  std::set<uint32_t> explained;
  std::vector<const Fact*> nameless;  // as where a window broke a warning behind its process
  for (const Fact& fact : view.model().facts) {
    if (!is_reason(fact)) continue;
    explained.insert(fact.process);
    if (fact.process != kNobody && view.model().processes[fact.process].host.empty())
      nameless.push_back(&fact);
  }
  const auto follows_nameless = [&](const Fact& trace) {
    return std::any_of(nameless.begin(), nameless.end(), [&](const Fact* fact) {
      return fact->first.file == trace.first.file && fact->first.line < trace.first.line &&
             trace.first.line - fact->first.line <= kLinesBetween;
    });
  };
  for (const Fact* fact : view.facts(LineKind::kErrorTrace)) {
    if (fact->process == kNobody || !is_of_a_failure(*fact)) continue;
    if (explained.contains(fact->process) || follows_nameless(*fact)) continue;
    if (hit.what.empty()) hit.what = result_text(result_of(*fact)) + " in " + fact->value(0);
    add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

}  // namespace lockstep::analysis::log_rules
