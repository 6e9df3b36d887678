// SPDX-License-Identifier: Apache-2.0
// Exit code, first word and page title come from here alone: two places that decide would some day disagree,
// and a script would trust one of them.
#include "verdict/outcome.h"

#include "base/exit_codes.h"
#include "base/text/units.h"
#include "base/text/wording.h"

namespace lockstep::verdict {
namespace {

std::string amount(double value, const std::string& unit) {
  if (unit == "ns") return format_duration(value);
  if (unit == "bytes") return format_bytes(static_cast<uint64_t>(value));
  if (unit.starts_with("ns/")) return format_duration(value) + " per " + unit.substr(3);
  return format_decimal(value,
                        value < 10 && value != static_cast<double>(static_cast<int64_t>(value)) ? 2 : 0) +
         (unit.empty() ? "" : " " + unit);
}

}  // namespace

using analysis::Finding;
using analysis::Severity;

bool cannot_tell(const Finding& finding) {
  return facts(class_of(finding.id)).family == analysis::Family::kDoubt;
}

Outcome outcome(const analysis::Diagnosis& diagnosis) {
  if (!diagnosis.verdict) return Outcome::kHealthy;
  return cannot_tell(diagnosis.findings[*diagnosis.verdict]) ? Outcome::kCannotTell : Outcome::kProblem;
}

int exit_code(const analysis::Diagnosis& diagnosis) {
  switch (outcome(diagnosis)) {
    case Outcome::kProblem:
      return kExitFindings;
    case Outcome::kCannotTell:
      return kExitCannotTell;
    case Outcome::kHealthy:
      break;
  }
  return kExitOk;
}

std::string_view word(const Finding& finding) {
  // A note of doubt leaves the verdict alone, so it is no CANNOT TELL.
  if (finding.severity == Severity::kNote) return "note";
  if (cannot_tell(finding)) return "CANNOT TELL";
  return finding.severity == Severity::kCritical ? "CRITICAL" : "WARNING";
}

std::string_view healthy_words(bool still_runs, bool asked_all) {
  if (!asked_all) return "Nobody is stuck";
  return still_runs ? "No problem so far" : "No problem found";
}

std::string essence(const analysis::Diagnosis& diagnosis) {
  // What a watcher compares to see whether the verdict has changed: who and what, without times and amounts,
  // which change with every look.
  std::string text;
  for (const analysis::Finding& finding : diagnosis.findings) {
    if (finding.severity == analysis::Severity::kNote) continue;
    text += std::string(id_text(finding.id)) + ' ' + finding.comm + ' ' + finding.func;
    if (finding.op_index) text += ' ' + std::to_string(*finding.op_index);
    for (int32_t rank : finding.ranks) text += ' ' + std::to_string(rank);
    text += '\n';
  }
  return text;
}

std::string effect_text(const analysis::Effect& effect) {
  std::string text = amount(effect.value, effect.unit);
  const std::string low = amount(effect.low, effect.unit), high = amount(effect.high, effect.unit);
  // Compared as printed: bounds that read alike are no information.
  return low == high ? text : text + " (" + low + " to " + high + ")";
}

}  // namespace lockstep::verdict
