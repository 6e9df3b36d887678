// SPDX-License-Identifier: Apache-2.0
// Counters that rose. A counter alone says "possible"; who joins it with a slow operation on the same path
// may say more. Out-of-order packets are loss only with loss beside them, so rule 5 is asked before rule 6.
#include <map>
#include <tuple>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "links/judge/judge.h"
#include "links/judge/rules.h"
#include "links/judge/words.h"

namespace lockstep::links {
namespace {
using analysis::Finding;
using analysis::FindingClass;
using analysis::FindingId;
using analysis::Severity;

constexpr auto kPort = DeviceKind::kPort;
constexpr auto kNic = DeviceKind::kNic;
constexpr auto kNetDevice = DeviceKind::kNetDevice;
constexpr auto kPci = DeviceKind::kPci;
constexpr auto kGpu = DeviceKind::kGpu;
constexpr auto kNote = Severity::kNote;
constexpr auto kWarning = Severity::kWarning;
constexpr auto kCritical = Severity::kCritical;

constexpr Rule kRules[] = {
#define RULE(kind, name, per_second, rule, finding, severity, says, remedy) \
  {kind, name, per_second, rule, FindingId::k##finding, severity, says, remedy},
#include "links/judge/counter_rules.def"
#undef RULE
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

bool matches(const Rule& rule, const CounterKey& key) {
  if (rule.kind != key.kind) return false;
  // A part is enough where drivers differ in what they put around a name.
  if (!rule.name.starts_with('*')) return rule.name == key.name;
  return key.name.find(rule.name.substr(1, rule.name.size() - 2)) != std::string::npos;
}

bool is_fault(const Rule& rule) { return class_of(rule.finding) == FindingClass::kTransportError; }

namespace {

std::string amount(const Increase& increase) {
  return (increase.is_at_least ? "at least " : "") + format_count(increase.amount);
}

}  // namespace

void judge_increases(const Increases& increases, double seconds, const std::string& host,
                     std::vector<Finding>& findings) {
  // Without a time between the readings no rate is known; a clock that was set back gives a negative one.
  if (seconds <= 0) return;
  // By finding, rule and device: several counters of one trouble.
  std::map<std::tuple<FindingId, int, std::string>, size_t> reported;
  for (const Rule& rule : kRules)
    for (const auto& [key, increase] : increases) {
      if (!matches(rule, key) || increase.amount == 0) continue;
      if (static_cast<double>(increase.amount) <= rule.per_second * seconds) continue;
      const std::string line = key.device + " " + key.name + ": +" + amount(increase) + " in " +
                               format_duration(seconds * 1e9) +
                               (increase.was_reset ? ", since it was reset to zero" : "");
      const auto [at, is_new] =
          reported.try_emplace({rule.finding, rule.number, key.device}, findings.size());
      if (is_new)
        add(findings, rule.finding, key.device + ": " + std::string(rule.says), host,
            std::string(rule.remedy))
            .severity = rule.severity;
      Finding& finding = findings[at->second];
      finding.evidence.push_back(line);
      finding.severity = std::max(finding.severity, rule.severity);
    }
}

void judge_totals(const Counters& counters, const std::string& host, std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Rule& rule : kRules) {
    // What rises on healthy links, too, says nothing as a sum since boot; nor do a device's trainings at
    // start.
    if (rule.per_second > 0 || !is_fault(rule) || rule.name == "carrier_changes") continue;
    for (const auto& [key, value] : counters)
      if (matches(rule, key) && value > 0)
        lines.push_back(key.device + " " + key.name + ": " + format_count(value));
  }
  if (lines.empty()) return;
  Finding& finding =
      add(findings, FindingId::kTransportErrorSinceBoot,
          wording::count(lines.size(), "error counter") + " of links " + (lines.size() == 1 ? "is" : "are") +
              " not zero; when they rose is unknown",
          host, "Check again later: `lockstep links --checks --baseline FILE` says which of them rise.");
  // The statement has the number of all; so many lines are enough to see which devices they are of.
  if (lines.size() > 16) lines.resize(16);
  finding.evidence = std::move(lines);
}

}  // namespace lockstep::links
