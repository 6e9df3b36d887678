// SPDX-License-Identifier: Apache-2.0
// Matches releases and symptoms in a log with the list of known issues. A release alone is not enough:
// without a line that shows the symptom, a note would warn every user of that release of a problem that they
// do not have.
#include "analysis/log_rules/known_issues.h"

#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "model/torch/process_group.h"

namespace lockstep::analysis::log_rules {
namespace {

using Trouble = KnownIssue::Trouble;
using Sign = KnownIssue::Sign;

constexpr bool kOfNCCL = false, kOfRCCL = true;
constexpr KnownIssue kIssues[] = {
#define WARNED(library, first, fixed, words, also, sign, ...) \
  {Trouble::kWarned, kOf##library, first, fixed, words, also, Sign::k##sign, __VA_ARGS__},
#define WAITED(first, fixed, func, sign, ...) \
  {Trouble::kWaited, kOfNCCL, first, fixed, func, "", Sign::k##sign, __VA_ARGS__},
#define ENDED(first, fixed, signal, sign, ...) \
  {Trouble::kEnded, kOfNCCL, first, fixed, #signal, "", Sign::k##sign, __VA_ARGS__},
#define WRONG(first, fixed, sign, ...) \
  {Trouble::kWrong, kOfNCCL, first, fixed, "", "", Sign::k##sign, __VA_ARGS__},
#define ABORT_STUCK(first, fixed, ...) \
  {Trouble::kAbortStuck, kOfNCCL, first, fixed, "", "", Sign::kAborted, __VA_ARGS__},
#include "analysis/log_rules/known_issues.def"
#undef ABORT_STUCK
#undef WRONG
#undef ENDED
#undef WAITED
#undef WARNED
};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// One of the alternatives between bars.
bool has_one(std::string_view text, std::string_view words) {
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find('|', at), words.size());
    if (has(text, words.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

// Releases of a library: what each process says, and all together.
class Releases {
 public:
  Releases(const View& view, bool is_rccl) {
    const auto rccl = view.facts(LineKind::kRcclVersion);
    if (is_rccl) {
      for (const Fact* fact : rccl) take(fact->value(0), fact->process);
    } else if (rccl.empty()) {  // RCCL names the NCCL that it was made from as well
      for (const Fact* fact : view.facts(LineKind::kVersion)) take(fact->value(0), fact->process);
      for (const Fact* fact : view.facts(LineKind::kLibraryRaised)) {
        constexpr std::string_view kMark = "NCCL version ";
        const size_t at = fact->first.text.find(kMark);
        if (at != std::string::npos) take(fact->first.text.substr(at + kMark.size()), kNobody);
      }
    }
  }

  // Of a process; of one that does not say it, or of nobody, what all say. 0: unknown, or several.
  int32_t of(uint32_t process) const {
    const auto own = process == kNobody ? by_process_.end() : by_process_.find(process);
    // Of several releases none is certain, so no issue is reported.
    const std::set<int32_t>& stated = own == by_process_.end() ? all_ : own->second;
    return stated.size() == 1 ? *stated.begin() : 0;
  }

 private:
  void take(const std::string& text, uint32_t process) {
    const int32_t release = model::parse_nccl_version(text.substr(0, text.find_first_not_of("0123456789.")));
    if (release <= 0) return;
    all_.insert(release);
    if (process != kNobody) by_process_[process].insert(release);
  }

  std::map<uint32_t, std::set<int32_t>> by_process_;
  std::set<int32_t> all_;
};

bool is_within(int32_t release, const KnownIssue& issue) {
  return release != 0 && release >= issue.first && (issue.fixed == 0 || release < issue.fixed);
}

// "architecture/maker" of the CPUs that topologies show.
std::set<std::string> cpus(const View& view) {
  std::set<std::string> found;
  for (const Fact* fact : view.facts(LineKind::kTopologyCpu))
    found.insert(fact->value(1) + '/' + fact->value(2));
  return found;
}

bool on_arm(const View& view) {
  const std::set<std::string> found = cpus(view);
  // 3 is NCCL's number of ARM's architecture.
  return !found.empty() && std::all_of(found.begin(), found.end(),
                                       [](const std::string& cpu) { return cpu.starts_with("3/"); });
}

bool gdr_is_off(const View& view) {
  for (const Fact* fact : view.facts(LineKind::kEnvironment)) {
    const std::string name = fact->value(0), value = fact->value(1);
    if ((name == "NET_GDR_LEVEL" && (value == "0" || value == "LOC")) ||
        (name == "NET_GDR_C2C" && value == "0"))
      return true;
  }
  return false;
}

// Of one pattern.
bool cross_nic_differs(const View& view) {
  std::map<std::string, std::set<std::string>> chosen;
  for (const Fact* fact : view.facts(LineKind::kSearchResult)) chosen[fact->value(0)].insert(fact->value(1));
  return std::any_of(chosen.begin(), chosen.end(), [](const auto& row) { return row.second.size() > 1; });
}

bool ran_with(const View& view, std::string_view algorithm) {
  const auto& all = view.model().algorithms;
  return std::any_of(all.begin(), all.end(), [&](const auto& row) { return has(row.first, algorithm); });
}

bool any_of_kind(const View& view, LineKind kind, size_t value, std::string_view words) {
  const auto facts = view.facts(kind);
  return std::any_of(facts.begin(), facts.end(),
                     [&](const Fact* fact) { return has(fact->value(value), words); });
}

bool on_virtual_bridge(const View& view) {
  const auto facts = view.facts(LineKind::kBootstrap);
  return std::any_of(facts.begin(), facts.end(),
                     [](const Fact* fact) { return interface_of(*fact).starts_with("virbr"); });
}

bool shows(const View& view, Sign sign) {
  const auto& comms = view.model().comms;
  switch (sign) {
    case Sign::kNone:
      return true;
    case Sign::kArm:
      return on_arm(view);
    case Sign::kMixedCpus:
      return cpus(view).size() > 1;
    case Sign::kRoce:
      return any_of_kind(view, LineKind::kIbCards, 0, "/RoCE");
    case Sign::kUnevenNvlink:
      return uneven_nvlink(view).has_value();
    case Sign::kTreeLl128:
      return ran_with(view, " TREE LL128");
    case Sign::kSymmetricKernel:
      return ran_with(view, " Symmetric ");
    case Sign::kCrossNicDiffers:
      return cross_nic_differs(view);
    case Sign::kArmGdrOff:
      return on_arm(view) && gdr_is_off(view);
    case Sign::kMnnvl:
      return std::any_of(comms.begin(), comms.end(), [](const CommPart& part) { return part.has_mnnvl; });
    case Sign::kCollNetFailed:
      return !view.facts(LineKind::kCollNetFailed).empty();
    case Sign::kPluginFailed:
      return !view.facts(LineKind::kPluginFailed).empty();
    case Sign::kAborted:
      return aborted(view).has_value();
    case Sign::kVirtualBridge:
      return on_virtual_bridge(view);
  }
  return false;
}

bool ended_by(std::string_view text, const std::string& signal) {
  if (has(text, "exitcode: -" + signal + ')') || has(text, "return code = -" + signal) ||
      has(text, "exit code: -" + signal) || has(text, "Signal " + signal + " ("))
    return true;
  // The list has signals 7 (SIGBUS) and 11 (SIGSEGV), which shells print as words.
  return has(text, signal == "7" ? "Bus error (core dumped" : "Segmentation fault (core dumped");
}

// Lines that show the trouble, of processes whose release has the issue.
Hit trouble(const View& view, const KnownIssue& issue, const Releases& releases, int32_t& release) {
  Hit hit;
  // What launchers and programs print belongs to no process of NCCL: then all must have one release.
  const auto counts = [&](uint32_t process) {
    const int32_t of = releases.of(process);
    if (!is_within(of, issue)) return false;
    release = of;
    return true;
  };
  switch (issue.trouble) {
    case Trouble::kWarned:
      for (const Fact& fact : view.model().facts) {
        if (fact.is_warning && has_one(fact.first.text, issue.words) && has(fact.first.text, issue.also) &&
            counts(fact.process))
          prove(view, fact.first, hit);
      }
      break;
    case Trouble::kWaited:
      for (const Stall& stall : view.torch().stalls()) {
        if (!has(stall.func, issue.words) || !counts(kNobody)) continue;
        for (const TorchLine* line : stall.evidence) prove(view, line->first, hit);
      }
      break;
    case Trouble::kEnded:
      for (const Fact* fact : view.facts(LineKind::kProcessEnded)) {
        if (ended_by(fact->first.text, std::string(issue.words)) && counts(kNobody))
          prove(view, fact->first, hit);
      }
      for (const TorchLine* line : view.torch().lines(TorchRemark::kExit)) {
        const bool is_known = line->exit_code != TorchLine::kNoCode;
        if (is_known && std::to_string(-line->exit_code) == issue.words && counts(kNobody))
          prove(view, line->first, hit);
      }
      break;
    case Trouble::kWrong:
      for (const Fact* fact : view.facts(LineKind::kWrongResults)) {
        if (counts(kNobody)) prove(view, fact->first, hit);
      }
      break;
    case Trouble::kAbortStuck:
      for (const TorchLine* line : view.torch().lines(TorchRemark::kWatchdogStuck)) {
        if (counts(kNobody)) prove(view, line->first, hit);
      }
      break;
  }
  return hit;
}

}  // namespace

std::span<const KnownIssue> known_issue_list() { return kIssues; }

std::vector<Hit> known_issues(const View& view) {
  const Releases nccl(view, kOfNCCL), rccl(view, kOfRCCL);
  std::vector<Hit> hits;
  for (const KnownIssue& issue : kIssues) {
    int32_t release = 0;
    Hit hit = trouble(view, issue, issue.is_rccl ? rccl : nccl, release);
    if (hit.evidence.empty() || !shows(view, issue.sign)) continue;
    hit.what = (issue.is_rccl ? "RCCL " : "NCCL ") + model::nccl_version_text(release) +
               " has a known issue that matches: " + std::string(issue.what) +
               (issue.fixed == 0 ? std::string("; Lockstep knows no release with a fix")
                                 : "; fixed in " + model::nccl_version_text(issue.fixed));
    hit.evidence.push_back("workaround: " + std::string(issue.workaround));
    hit.evidence.emplace_back(issue.source);
    hit.lines.clear();  // it says what else it may be, and nothing about the lines themselves
    hits.push_back(std::move(hit));
  }
  return hits;
}

}  // namespace lockstep::analysis::log_rules
