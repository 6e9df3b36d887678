// SPDX-License-Identifier: Apache-2.0
// Warnings that are not known, and what became of the calls that printed them. When a call fails, each
// function on its way back prints a line with file, line and result: a trace. A warning with a trace behind
// it ended its call; one without may have done no harm. Traces without a warning show that something failed,
// and not why.
#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::to_int;

// ncclResult_t, as NCCL's documentation calls them. 6 says that the cause is elsewhere, 7 is no error.
std::string result_text(int64_t result) {
  static constexpr std::string_view kTexts[] = {
      "", "a CUDA error", "a system error", "an internal error", "an invalid argument", "invalid usage"};
  return std::string(result > 0 && static_cast<size_t>(result) < std::size(kTexts) ? kTexts[result] : "");
}

int64_t result_of(const Fact& trace) {
  const bool has_site = trace.values.size() > 4;  // with the function in brackets
  return to_int(trace.value(has_site ? 3 : 2));
}

bool is_of_a_socket(const Fact& trace) { return trace.value(0).find("socket") != std::string::npos; }

// When a process ends, its sockets fail: those say nothing, unless they are all that somebody shows.
bool is_of_a_failure(const View& view, const Fact& trace) {
  if (result_text(result_of(trace)).empty()) return false;
  if (!is_of_a_socket(trace)) return true;
  uint64_t traces = 0;
  for (const Fact* fact : view.facts(LineKind::kErrorTrace)) traces += fact->count;
  return view.model().torch.empty() && view.model().coverage.known == traces && traces > 1;
}

// "2 (root should be in the 0..-1 range)": NCCL prints how many ranks the communicator has, and it has none
// after it was destroyed or aborted, and before it is created.
bool is_of_no_ranks(const Fact& fact) {
  const std::string text = fact.value(1);
  const size_t end = text.find("0..");
  return end != std::string::npos && to_int(std::string_view(text).substr(end + 3)) <= 0 &&
         text.find("range)") != std::string::npos;
}

// What shows that something failed, or what does no harm, and not why.
bool is_reason(const Fact& fact) {
  return fact.is_warning && fact.kind != LineKind::kProxyFailed && fact.kind != LineKind::kHelperFailed &&
         fact.kind != LineKind::kVerbsAbsent;
}

}  // namespace

bool has_ranks(const View&, const Fact& fact) { return fact.is_warning && !is_of_no_ranks(fact); }

std::optional<Hit> communicator_gone(const View& view) {
  Hit hit;
  std::string call = "NCCL was called";
  for (const LineKind kind : {LineKind::kInvalidArgument, LineKind::kCommGone}) {
    for (const Fact* fact : view.facts(kind)) {
      if (!fact->is_warning || (kind == LineKind::kInvalidArgument && !is_of_no_ranks(*fact))) continue;
      if (kind == LineKind::kInvalidArgument && hit.evidence.empty()) call = fact->value(0) + " was called";
      add(view, *fact, hit);
    }
  }
  if (hit.evidence.empty()) return std::nullopt;
  const auto& comms = view.model().comms;
  const auto aborted = std::find_if(comms.begin(), comms.end(), [&](const CommPart& part) {
    return part.aborted && hit.processes.contains(part.process);
  });
  const bool was_aborted = aborted != comms.end();
  if (was_aborted) {
    prove(view, aborted->abort, hit);
    // The abort has an earlier reason, which other findings may name.
    hit.severity = Severity::kWarning;
  }
  hit.what = call + (was_aborted
                         ? " with a communicator that had been aborted, usually after an earlier failure"
                         : " with a communicator that had been destroyed or aborted, or was not created yet");
  return hit;
}

// The call that warned returned an error.
std::optional<Hit> failed_warnings(const View& view) {
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kUnknownWarning)) {
    const auto traces = view.facts(LineKind::kErrorTrace, fact->process);
    const bool failed = std::any_of(traces.begin(), traces.end(), [&](const Fact* trace) {
      // A trace before the warning belongs to an earlier failure.
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
  // A terminal that breaks lines leaves a warning without its process. Traces close behind it are then taken
  // for its own.
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
    if (fact->process == kNobody || !is_of_a_failure(view, *fact)) continue;
    if (explained.contains(fact->process) || follows_nameless(*fact)) continue;
    if (hit.what.empty())
      hit.what = result_text(result_of(*fact)) + " in " + fact->value(0) +
                 (is_of_a_socket(*fact) ? " (as when a peer ends, or a job is torn down)" : "");
    add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

}  // namespace lockstep::analysis::log_rules
