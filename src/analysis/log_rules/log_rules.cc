// SPDX-License-Identifier: Apache-2.0
// Asks every rule of rules.def of the logs and words what it finds. Rules are rows of a list, so that a new
// one is a function and a line, and the pages about rules come from the same rows. Warnings of which no rule
// tells are reported last as what they are: to pass over them would call a log healthy that is not.
#include "analysis/log_rules/log_rules.h"

#include <algorithm>
#include <charconv>

#include "analysis/log_rules/rules.h"
#include "analysis/log_rules/soundness.h"
#include "base/text/wording.h"

namespace lockstep::analysis::log_rules {
namespace {

struct Row {
  std::optional<Hit> (*rule)(const View&);  // of a RULE row
  std::vector<Hit> (*rules)(const View&);   // of a RULES row
  LineKind kind;                            // of a MESSAGE row
  bool (*when)(const View& view, const Fact& fact);
  FindingId id;
  std::string_view text, advice;
  bool is_unmatched = false;  // of an UNMATCHED row
};

constexpr Row kRows[] = {
#define RULE(function, id, text, advice) \
  {&(function), nullptr, LineKind::kUnknown, nullptr, FindingId::k##id, text, advice},
#define RULES(function, id, text, advice) \
  {nullptr, &(function), LineKind::kUnknown, nullptr, FindingId::k##id, text, advice},
#define MESSAGE(kind, when, id, text, advice) \
  {nullptr, nullptr, LineKind::k##kind, &(when), FindingId::k##id, text, advice},
#define UNMATCHED(id, text, advice) \
  {nullptr, nullptr, LineKind::kUnknown, nullptr, FindingId::k##id, text, advice, true},
#include "analysis/log_rules/rules.def"
#undef UNMATCHED
#undef MESSAGE
#undef RULES
#undef RULE
};

struct Advice {
  FindingId id;
  std::string_view text;
};
constexpr Advice kAmdAdvice[] = {
#define ADVICE(id, text) {FindingId::k##id, text},
#include "analysis/log_rules/amd_advice.def"
#undef ADVICE
};

// RCCL, HIP or AMD's links are in them.
bool are_of_amd(const View& view) {
  const auto failures = view.facts(LineKind::kCudaFailure);
  return !view.facts(LineKind::kRcclVersion).empty() || !view.facts(LineKind::kXgmiLink).empty() ||
         std::any_of(failures.begin(), failures.end(), [](const Fact* fact) {
           return fact->value(1) == "HIP" || fact->first.text.find("HIP failure") != std::string::npos;
         });
}

std::string_view advice_of(const Row& row, bool is_amd) {
  for (const Advice& of : kAmdAdvice)
    if (is_amd && of.id == row.id) return of.text;
  return row.advice;
}

std::vector<Hit> ask(const Row& row, const View& view) {
  if (row.is_unmatched) return {};
  if (row.rules != nullptr) return row.rules(view);
  if (row.rule != nullptr) {
    std::optional<Hit> hit = row.rule(view);
    return hit ? std::vector<Hit>{std::move(*hit)} : std::vector<Hit>();
  }
  Hit hit;
  for (const Fact* fact : view.facts(row.kind)) {
    if (row.when(view, *fact)) add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return {};
  return {std::move(hit)};
}

std::string filled(std::string_view text, const View& view, const Hit& hit) {
  std::string out;
  while (!text.empty()) {
    const size_t open = text.find('{'), close = text.find('}');
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    out += text.substr(0, open);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    if (name == "who") {
      out += view.who(hit.processes);
    } else if (name == "what") {
      out += hit.what;
    } else {
      size_t number = 0;
      std::from_chars(name.data(), name.data() + name.size(), number);
      if (number >= 1 && number <= hit.values.size()) {
        out += hit.values[number - 1];
        if (out.ends_with('.')) out.pop_back();  // the line's full stop
      }
    }
    text.remove_prefix(close + 1);
  }
  return out += text;
}

Finding finding_of(const Row& row, const View& view, bool is_amd, Hit hit) {
  Finding finding(row.id);
  if (hit.severity) finding.severity = *hit.severity;
  finding.statement = filled(row.text, view, hit);
  finding.advice = hit.advice.empty() ? advice_of(row, is_amd) : hit.advice;
  finding.effect = hit.effect;
  finding.comm = std::move(hit.comm);
  finding.func = std::move(hit.func);
  finding.op_index = hit.op_index;
  finding.needed_evidence = std::move(hit.needed_evidence);
  std::set<int32_t> ranks(hit.ranks.begin(), hit.ranks.end());
  std::set<std::string> hosts;
  for (const uint32_t process : hit.processes) {
    const auto& of = view.model().processes[process];
    if (!of.host.empty()) hosts.insert(of.host);
    // A rule that names ranks blames those; else those are named whose logs say it.
    if (hit.ranks.empty()) ranks.insert(of.rank);
  }
  ranks.erase(-1);
  finding.ranks.assign(ranks.begin(), ranks.end());
  finding.hosts.assign(hosts.begin(), hosts.end());
  finding.evidence = std::move(hit.evidence);
  if (hit.more > 0) finding.evidence.push_back("and " + std::to_string(hit.more) + " more lines like it");
  return finding;
}

// Warnings that no hit covers: a log with one of them is no log without trouble.
Hit unmatched_warnings(const View& view, const std::set<std::pair<uint32_t, uint64_t>>& reported) {
  Hit hit;
  uint64_t times = 0;
  std::string first;
  for (const Fact& fact : view.model().facts) {
    if (!fact.is_warning || reported.contains({fact.first.file, fact.first.line})) continue;
    if (times == 0) first = warning_text(fact);
    times += fact.count;
    add(view, fact, hit);
  }
  hit.what = wording::count(times, "warning") + " that Lockstep does not know: " + first;
  return hit;
}

std::vector<Finding> judge_sound(const LogModel& model) {
  const View view(model);
  const bool is_amd = are_of_amd(view);
  std::vector<Finding> findings;
  std::set<std::pair<uint32_t, uint64_t>> reported;
  for (const Row& row : kRows) {
    for (Hit& hit : ask(row, view)) {
      // By line and not by row: a row that cites a warning has reported it.
      reported.merge(hit.lines);
      findings.push_back(finding_of(row, view, is_amd, std::move(hit)));
    }
  }
  for (const Row& row : kRows) {
    if (!row.is_unmatched) continue;
    Hit hit = unmatched_warnings(view, reported);
    if (!hit.evidence.empty()) findings.push_back(finding_of(row, view, is_amd, std::move(hit)));
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace

std::vector<Finding> judge(const LogModel& model) {
  // A log with a hole cannot prove that a rank did not do something.
  if (has_damage(model)) return judge_sound(without_damaged(model));
  return judge_sound(model);
}

}  // namespace lockstep::analysis::log_rules
