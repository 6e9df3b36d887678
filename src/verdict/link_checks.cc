// SPDX-License-Identifier: Apache-2.0
// Sets checks of links beside what a job saw. A port is on the path of a finding if the finding names it, if
// it is the only card nearest to the GPUs of its ranks, or if the host has no other: hosts have ports for
// storage, which are often down and slow nobody. A tool that finds nothing is quoted as well: it sends the
// reader elsewhere.
#include "verdict/link_checks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "verdict/device_evidence.h"
#include "verdict/transfers.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingClass;
using analysis::Severity;
using links::LinkFact;

constexpr size_t kMostFactsCited = 4;

// A UUID in whatever form, as its digits.
std::string uuid_digits(std::string_view uuid) {
  std::string digits;
  if (uuid.starts_with("GPU-")) uuid.remove_prefix(4);
  for (const char c : uuid)
    if (c != '-') digits += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  return digits;
}

bool is_same_host(std::string_view a, std::string_view b) {
  // One tool prints a host with its domain, another without. Two that have one differ in it.
  return a == b || a.substr(0, a.find('.')) == b || a == b.substr(0, b.find('.'));
}

class SettingBeside {
 public:
  SettingBeside(const std::vector<LinkCheck>& checks, const std::vector<Evidence>& evidence,
                std::vector<Finding>& findings)
      : checks_(checks), evidence_(evidence), findings_(findings) {
    for (const Evidence& of : evidence_) {
      for (const auto& [rank, host] : of.hosts)
        if (!host.empty()) hosts_.insert(host);
    }
  }

  void run() {
    const bool is_all_there_is =
        std::all_of(evidence_.begin(), evidence_.end(), [](const Evidence& of) { return of.is_of_hosts; });
    // What is added below is of checks, and no other check is set beside it.
    const size_t joined = findings_.size();
    for (const LinkCheck& check : checks_) {
      const std::string host = host_of(check);
      std::set<const LinkFact*> cited;
      for (size_t i = 0; i < joined && !host.empty(); ++i)
        if (is_about_transfers(findings_[i]) && is_on(findings_[i], host))
          set_beside(check, host, findings_[i], cited);
        else if (is_about_gpus(findings_[i]) && is_on(findings_[i], host))
          of_gpus(check, host, findings_[i], cited);
      if (is_all_there_is)
        add_as_they_are(check);
      else
        add_own(check, host, cited);
    }
  }

 private:
  std::string host_of(const LinkCheck& check) const {
    if (!check.facts.host.empty()) {
      std::vector<std::string> same;
      std::copy_if(hosts_.begin(), hosts_.end(), std::back_inserter(same),
                   [&](const std::string& host) { return is_same_host(host, check.facts.host); });
      // A short name may be of hosts of two domains.
      return same.size() == 1 ? same.front() : hosts_.contains(check.facts.host) ? check.facts.host : "";
    }
    for (const LinkFact& fact : check.facts.facts)
      if (fact.device.starts_with("GPU-")) return host_of_gpu(fact.device);
    for (const std::string& uuid : check.facts.uuids)
      if (std::string host = host_of_gpu(uuid); !host.empty()) return host;
    std::string named;
    bool is_open = false;
    for (const std::string& host : hosts_) {
      // The longest name counts: `node1` is a word of `node1-ib` as well. Of two equally long ones neither
      // does.
      if (!has_word(check.file, host) || host.size() < named.size()) continue;
      is_open = host.size() == named.size();
      named = host;
    }
    if (!named.empty()) return is_open ? "" : named;
    return hosts_.size() == 1 ? *hosts_.begin() : "";
  }

  std::string host_of_gpu(const std::string& uuid) const {
    for (const Evidence& of : evidence_) {
      if (!of.job) continue;
      for (const model::JobProcess& process : of.job->processes)
        if (uuid_digits(of.job->text(process.row.uuid)) == uuid_digits(uuid))
          return std::string(of.job->text(process.row.host));
    }
    return {};
  }

  static void add_line(Finding& finding, const std::string& text) {
    finding.evidence.push_back(std::string(kLinkChecks) + ": " + text);
    add_source(kLinkChecks, finding);
  }

  static void cite(const LinkCheck& check, const std::string& host, const LinkFact& fact,
                   std::string_view word, Finding& finding) {
    add_line(finding, check.tool + " " + std::string(word) + ": " + wording::name(fact.words) + " of " +
                          wording::name(host) + ' ' + fact.says);
    for (const std::string& line : fact.lines)
      add_line(finding, wording::name(check.file) + ", line " + line);
  }

  // The GPUs of a finding's ranks on a host, by address and by digits of their UUIDs; nothing if one is
  // unknown.
  std::optional<std::set<std::string>> gpus_of(const Finding& finding, const std::string& host) const {
    std::set<std::string> gpus;
    for (const ProcessOfRun& process : processes_on(host, evidence_, finding)) {
      const std::string pci = process.pci();
      if (pci.empty()) return std::nullopt;
      gpus.insert(pci);
      if (const std::string uuid = process.uuid(); !uuid.empty()) gpus.insert(uuid_digits(uuid));
    }
    if (gpus.empty()) return std::nullopt;
    return gpus;
  }

  static bool has_gpu(const std::set<std::string>& gpus, const std::string& device) {
    return gpus.contains(device) || gpus.contains(uuid_digits(device));
  }

  void set_beside(const LinkCheck& check, const std::string& host, Finding& finding,
                  std::set<const LinkFact*>& cited) const {
    const auto gpus = gpus_of(finding, host);
    if (is_within_host(finding))
      within_host(check, host, gpus, finding, cited);
    else
      over_network(check, host, gpus, finding, cited);
  }

  // A GPU's own trouble explains that it is late, or stuck; what it was not slowed down by sends the reader
  // elsewhere.
  static bool is_about_gpus(const Finding& finding) {
    const FindingClass of = class_of(finding.id);
    return finding.severity > Severity::kNote &&
           (of == FindingClass::kGpuLate || of == FindingClass::kStuckInGpu);
  }

  void of_gpus(const LinkCheck& check, const std::string& host, Finding& finding,
               std::set<const LinkFact*>& cited) const {
    const auto gpus = gpus_of(finding, host);
    if (!gpus) return;
    for (const LinkFact& fact : check.facts.facts) {
      if (fact.of != LinkFact::Of::kGpu || !has_gpu(*gpus, fact.device)) continue;
      const bool is_late = class_of(finding.id) == FindingClass::kGpuLate;
      if (!fact.is_trouble()) {
        if (is_late)
          add_line(finding, check.tool + " shows no fault: " + fact.words + " of " + wording::name(host) +
                                ' ' + fact.says);
        continue;
      }
      // A low clock is slow, and stops nothing.
      if (!is_late && fact.finding == analysis::FindingId::kGpuLateThrottled) continue;
      cite(check, host, fact, "supports this", finding);
      add_advice(fact.remedy, finding);
      cited.insert(&fact);
    }
  }

  void within_host(const LinkCheck& check, const std::string& host,
                   const std::optional<std::set<std::string>>& gpus, Finding& finding,
                   std::set<const LinkFact*>& cited) const {
    std::vector<const LinkFact*> troubles;
    size_t nvlinks = 0, pairs = 0;
    bool counts_errors = false;
    for (const LinkFact& fact : check.facts.facts) {
      if (fact.of == LinkFact::Of::kPort || fact.of == LinkFact::Of::kGpu) continue;
      // A pair is of these ranks only if both of its ends are.
      if (gpus && (!has_gpu(*gpus, fact.device) || (!fact.to.empty() && !has_gpu(*gpus, fact.to)))) continue;
      ++(fact.of == LinkFact::Of::kNvlinks ? nvlinks : pairs);
      counts_errors |= fact.says.find("without errors") != std::string::npos ||
                       fact.says.find("no errors") != std::string::npos;
      if (fact.is_trouble()) troubles.push_back(&fact);
    }
    const std::string of = gpus ? " of these GPUs of " + wording::name(host) : " of " + wording::name(host);
    for (size_t i = 0; i < std::min(troubles.size(), kMostFactsCited); ++i) {
      cite(check, host, *troubles[i],
           gpus ? "supports this" : "may explain this; it does not say which GPUs it is about", finding);
      if (gpus) add_advice(troubles[i]->remedy, finding);
    }
    cited.insert(troubles.begin(), troubles.end());
    if (!troubles.empty()) return;
    if (pairs > 0)
      add_line(finding,
               check.tool + " contradicts a slow link: " +
                   (gpus ? "between these GPUs of " + wording::name(host) : "on " + wording::name(host)) +
                   " no copy is slower than its siblings (" + wording::count(pairs, "rate") +
                   " compared); the job may have shared the link with others");
    if (nvlinks > 0)
      add_line(finding, check.tool + " shows no fault: the NVLinks" + of + " are " +
                            (counts_errors ? "up, without errors" : "up; it does not show errors"));
  }

  // The ports that this finding's data must have crossed; nothing where there is a choice.
  static std::optional<std::set<std::string>> ports_of(const LinkCheck& check, const Finding& finding,
                                                       const std::optional<std::set<std::string>>& gpus) {
    std::set<std::string> named, all, near;
    for (const LinkFact& fact : check.facts.facts) {
      if (fact.of != LinkFact::Of::kPort) continue;
      all.insert(fact.device);
      if (names_port(finding, fact.device)) named.insert(fact.device);
    }
    if (!named.empty()) return named;
    if (all.size() == 1) return all;
    if (!gpus || is_about_whole_hosts(finding)) return std::nullopt;
    for (const std::string& gpu : *gpus) {
      const auto cards = check.facts.nearest.find(gpu);
      if (cards == check.facts.nearest.end()) continue;  // its UUID, or a GPU with no card near
      // With several cards equally near it is NCCL's choice which one carries the data.
      if (cards->second.size() != 1) return std::nullopt;
      near.insert(*cards->second.begin());
    }
    std::set<std::string> ports;
    for (const LinkFact& fact : check.facts.facts)
      if (fact.of == LinkFact::Of::kPort && near.contains(fact.name)) ports.insert(fact.device);
    return ports.empty() ? std::nullopt : std::optional(ports);
  }

  void over_network(const LinkCheck& check, const std::string& host,
                    const std::optional<std::set<std::string>>& gpus, Finding& finding,
                    std::set<const LinkFact*>& cited) const {
    const auto ports = ports_of(check, finding, gpus);
    std::vector<const LinkFact*> troubles;
    size_t looked_at = 0, without_state = 0;
    for (const LinkFact& fact : check.facts.facts) {
      if (fact.of != LinkFact::Of::kPort || (ports && !ports->contains(fact.device))) continue;
      ++looked_at;
      without_state += !fact.has_state;
      if (fact.is_trouble()) troubles.push_back(&fact);
    }
    for (size_t i = 0; i < std::min(troubles.size(), kMostFactsCited); ++i) {
      cite(check, host, *troubles[i], ports ? "supports this" : "may explain this, if the job uses that port",
           finding);
      if (ports) add_advice(troubles[i]->remedy, finding);
    }
    cited.insert(troubles.begin(), troubles.end());
    if (!troubles.empty() || looked_at == 0) return;
    if (without_state == looked_at) {
      add_counted(check, host, ports, finding);
      return;
    }
    add_line(finding,
             check.tool + " shows no fault: of " + wording::name(host) + ' ' +
                 (looked_at == 1 ? "the port is" : "all " + wording::count(looked_at, "port") + " are") +
                 " active, and none is slower than its siblings; it does not show errors");
  }

  // What a tool counted that shows no states, where none of it proves a fault.
  static void add_counted(const LinkCheck& check, const std::string& host,
                          const std::optional<std::set<std::string>>& ports, Finding& finding) {
    size_t shown = 0;
    for (const LinkFact& fact : check.facts.facts) {
      if (fact.of != LinkFact::Of::kPort || (ports && !ports->contains(fact.device))) continue;
      if (shown++ < kMostFactsCited)
        add_line(finding, check.tool + ": " + wording::name(fact.words) + " of " + wording::name(host) + ' ' +
                              fact.says + "; it does not show states");
    }
  }

  void add_as_they_are(const LinkCheck& check) {
    for (Finding finding : check.findings) {
      finding.statement = wording::name(check.file) + ": " + finding.statement;
      finding.sources = {std::string(kLinkChecks)};
      findings_.push_back(std::move(finding));
    }
  }

  // What supports no finding. Ports that are down or slower are a note: few hosts use all that they have.
  void add_own(const LinkCheck& check, const std::string& host, const std::set<const LinkFact*>& cited) {
    for (Finding finding : check.findings) {
      if (class_of(finding.id) == FindingClass::kEvidenceMissing) continue;
      const bool is_cited = std::any_of(cited.begin(), cited.end(), [&](const LinkFact* fact) {
        // By class and name, since a finding keeps no reference to the facts that it was made from.
        return fact->finding == finding.id && has_word(finding.statement, fact->name);
      });
      if (is_cited) continue;
      const bool is_port = class_of(finding.id) == FindingClass::kSlowNic;
      finding.severity =
          std::min(finding.severity, is_port || host.empty() ? Severity::kNote : Severity::kWarning);
      finding.statement =
          (host.empty() ? wording::name(check.file) : wording::name(host)) + ": " + finding.statement;
      finding.hosts.clear();
      if (!host.empty()) finding.hosts = {host};
      finding.evidence.push_back(host.empty()
                                     ? "it names no host of the job: put the host name into the file name"
                                     : "only possible: no slow transfer points to it, and the time of " +
                                           check.tool + " is unknown");
      finding.sources = {std::string(kLinkChecks)};
      findings_.push_back(std::move(finding));
    }
  }

  const std::vector<LinkCheck>& checks_;
  const std::vector<Evidence>& evidence_;
  std::vector<Finding>& findings_;
  std::set<std::string> hosts_;
};

}  // namespace

void add_link_checks(const std::vector<LinkCheck>& checks, const std::vector<Evidence>& evidence,
                     std::vector<Finding>& findings) {
  SettingBeside(checks, evidence, findings).run();
}

std::string link_checks_sentence(const std::vector<LinkCheck>& checks) {
  struct Seen {
    size_t files = 0, ports = 0, gpus = 0, pairs = 0;
  };
  std::map<std::string, Seen> tools;
  for (const LinkCheck& check : checks) {
    Seen& seen = tools[check.tool];
    ++seen.files;
    std::set<std::string_view> gpus;  // of one there may be several facts
    for (const LinkFact& fact : check.facts.facts) {
      seen.ports += fact.of == LinkFact::Of::kPort;
      seen.pairs += fact.of == LinkFact::Of::kPair;
      if (fact.of == LinkFact::Of::kNvlinks || fact.of == LinkFact::Of::kGpu) gpus.insert(fact.device);
    }
    seen.gpus += gpus.size();
  }
  std::string text;
  for (const auto& [tool, seen] : tools) {
    std::string what;
    const auto add = [&what](size_t count, std::string_view noun) {
      if (count > 0) what += (what.empty() ? "" : ", ") + plural(count, noun);
    };
    if (seen.files > 1) add(seen.files, "file");
    add(seen.ports, "port");
    add(seen.gpus, "GPU");
    add(seen.pairs, "rate");
    text += (text.empty() ? "" : "; ") + tool + (what.empty() ? "" : " (" + what + ")");
  }
  return text;
}

}  // namespace lockstep::verdict
