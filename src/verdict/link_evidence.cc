// SPDX-License-Identifier: Apache-2.0
// Sets the counters of links beside what else is known. A counter that rose is a cause only if it fits a
// finding: on its host, at its time, and on the card that its ranks use. Where log and counter name one port,
// each confirms the other; where the card is not known, the counter is cited as possible. What fits nothing
// is a finding of its own, and a weak one, since ports have errors while jobs are well. The other way round,
// that nothing rose is said, too: it sends the reader elsewhere.
#include "verdict/link_evidence.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "verdict/device_evidence.h"
#include "verdict/gpu_evidence.h"
#include "verdict/link_patterns.h"
#include "verdict/transfers.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingClass;
using analysis::FindingId;
using analysis::Severity;
using links::HostSamples;
using links::LinkTrouble;

constexpr size_t kMostCongestion = 2;

bool names_a_card(const Finding& finding, const HostSamples& host) {
  return std::any_of(host.cards.begin(), host.cards.end(),
                     [&](const auto& card) { return mentions(finding, card.first + ":"); });
}

class Joining {
 public:
  Joining(const std::vector<HostSamples>& hosts, const std::vector<Evidence>& evidence,
          std::vector<Finding>& findings)
      : hosts_(hosts), evidence_(evidence), findings_(findings) {}

  void run() {
    std::vector<const HostSamples*> hosts;
    for (const HostSamples& host : hosts_)
      if (is_of_this_run(host)) hosts.push_back(&host);
    // Counters of another day would explain anything.
    if (hosts.size() < hosts_.size()) add_other_time();
    // Logs first: what they confirm is no longer looked for by time and place alone.
    for (const HostSamples* const host : hosts) confirm(*host);
    for (Finding& finding : findings_)
      if (is_about_transfers(finding)) explain(finding, hosts);
    // From here on findings are added, and the pointers of cited_ no longer hold.
    for (Finding& finding : rail_findings(hosts, reported_)) findings_.push_back(std::move(finding));
    add_possible(hosts);
    for (Finding& finding : left_aside_findings(hosts, evidence_)) findings_.push_back(std::move(finding));
    add_gpu_evidence(hosts, evidence_, findings_);
    add_others_traffic(hosts, evidence_, findings_);
  }

 private:
  bool is_of_this_run(const HostSamples& host) const {
    const join::TimeSpan span{.first_ns = host.first_ns, .last_ns = host.last_ns};
    return std::all_of(evidence_.begin(), evidence_.end(),
                       [&](const Evidence& evidence) { return join::same_time(evidence.span, span); });
  }

  void add_other_time() {
    Finding finding(FindingId::kEvidenceMissingOtherTime);
    finding.statement = "the " + std::string(kLinkCounters) + " and the " + evidence_.front().source +
                        " are from different times: the counters were left out";
    finding.advice = "Give the files of one run.";
    finding.sources = {std::string(kLinkCounters), evidence_.front().source};
    findings_.push_back(std::move(finding));
  }

  // Logs that mention the same port: what each says, the other confirms.
  void confirm(const HostSamples& host) {
    for (const LinkTrouble& trouble : host.troubles)
      for (Finding& finding : findings_) {
        if (class_of(finding.id) != FindingClass::kTransportError || !is_on(finding, host.host) ||
            !names_port(finding, trouble.device))
          continue;
        cite(kLinkCounters, "confirmed", trouble, host.host, finding);
        confirmed_.insert(&trouble);
        cited_.emplace(&trouble, &finding);
      }
  }

  enum class OnPath : uint8_t { kYes, kNo, kUnknown };

  // The places of the cards and GPUs that the ranks of a finding use on a host; nothing where that is not
  // known.
  std::optional<std::set<std::string>> places_of(const Finding& finding, const HostSamples& host) const {
    std::set<std::string> places;
    for (const ProcessOfRun& process : processes_on(host.host, evidence_, finding)) {
      const auto gpu = host.gpus.find(process.pci());
      // One GPU whose place is unknown makes the whole answer unknown: its card may be any.
      if (gpu == host.gpus.end()) return std::nullopt;
      places.insert(gpu->second);
      if (is_within_host(finding)) continue;
      const std::set<std::string> nearest = nearest_cards(gpu->second, host);
      if (nearest.empty()) return std::nullopt;
      places.insert(nearest.begin(), nearest.end());
    }
    if (places.empty()) return std::nullopt;
    return places;
  }

  static OnPath on_path(const LinkTrouble& trouble, const Finding& finding, const HostSamples& host,
                        const std::optional<std::set<std::string>>& places) {
    if (class_of(finding.id) == FindingClass::kTransportError) {
      // What it says of a port was joined before, and is about no other.
      if (names_a_card(finding, host)) return OnPath::kNo;
      if (finding.ranks.empty()) return OnPath::kUnknown;
    } else if (is_about_whole_hosts(finding)) {
      return OnPath::kYes;
    }
    if (places && !trouble.card.empty()) return places->contains(trouble.card) ? OnPath::kYes : OnPath::kNo;
    std::set<std::string> cards;
    for (const auto& [name, path] : host.cards) cards.insert(path);
    // A host with a single card sends everything over it.
    return cards.size() == 1 && cards.contains(trouble.card) ? OnPath::kYes : OnPath::kUnknown;
  }

  void explain(Finding& finding, const std::vector<const HostSamples*>& hosts) {
    // Counters of some hosts alone clear only these.
    std::vector<std::string> without = finding.hosts;
    for (const HostSamples* const host : hosts) {
      if (!is_on(finding, host->host)) continue;
      std::erase(without, host->host);
      explain(finding, *host);
    }
    if (without.empty() || without.size() == finding.hosts.size()) return;
    finding.evidence.push_back(
        std::string(kLinkCounters) + ": none were sampled on " + wording::name(without.front()) +
        (without.size() > 1 ? " and " + wording::count(without.size() - 1, "other host") : ""));
  }

  void explain(Finding& finding, const HostSamples& host) {
    const auto places = places_of(finding, host);
    bool is_explained = false, may_be_explained = false;
    for (const LinkTrouble& trouble : host.troubles) {
      // A port that moved no data cannot have slowed a transfer.
      if (trouble.severity == Severity::kNote || trouble.moved_data == false || !is_in_time(trouble, finding))
        continue;
      if (cited_.contains({&trouble, &finding})) {
        is_explained = true;
        continue;
      }
      const OnPath on = on_path(trouble, finding, host, places);
      if (on == OnPath::kNo) continue;
      if (on == OnPath::kUnknown) {
        cite(kLinkCounters, "possible; which card is on the path is unknown", trouble, host.host, finding);
        may_be_explained = true;
        continue;
      }
      const bool is_confirmed = confirmed_.contains(&trouble);
      cite(kLinkCounters, is_confirmed ? "confirmed by the log" : "likely", trouble, host.host, finding);
      add_advice(trouble.remedy, finding);
      // What is only possible stays a finding of its own as well.
      if (!is_confirmed) likely_.insert(&trouble);
      is_explained = true;
    }
    if (!is_explained && !may_be_explained) add_quiet(finding, host, places.has_value());
    for (const LinkTrouble& use : host.uses)
      if (is_in_time(use, finding) && on_path(use, finding, host, places) == OnPath::kYes)
        cite(kLinkCounters, "not a link's fault", use, host.host, finding);
    for (size_t i = 0; i < std::min(host.congestion.size(), kMostCongestion); ++i)
      finding.evidence.push_back(std::string(kLinkCounters) + ": not a link's fault: " + host.congestion[i]);
  }

  static void add_quiet(Finding& finding, const HostSamples& host, bool on_path_only) {
    const std::string of = std::string(kLinkCounters) + ": ";
    if (host.watched == 0) {
      finding.evidence.push_back(of + "none of " + wording::name(host.host) + " could be read");
      return;
    }
    const bool others =
        std::any_of(host.troubles.begin(), host.troubles.end(),
                    [](const LinkTrouble& trouble) { return trouble.severity > Severity::kNote; });
    finding.evidence.push_back(of + "looked at " + wording::count(host.watched, "device") + " of " +
                               wording::name(host.host) + " from " + format_time(host.first_ns) + " to " +
                               format_time(host.last_ns) + ": " +
                               (!others        ? "no error counter rose"
                                : on_path_only ? "no error counter rose on the cards nearest to these GPUs"
                                               : "no error counter rose in the time in question"));
    add_source(kLinkCounters, finding);
  }

  // What nothing else reports.
  void add_possible(const std::vector<const HostSamples*>& hosts) {
    std::vector<TroubleAlone> alone;
    for (const HostSamples* const host : hosts)
      for (const LinkTrouble& trouble : host->troubles) {
        if (confirmed_.contains(&trouble) || likely_.contains(&trouble) || reported_.contains(&trouble))
          continue;
        // A port that nobody uses slows nobody down.
        const bool is_note = trouble.moved_data == false || trouble.severity == Severity::kNote;
        alone.push_back({host, &trouble, is_note,
                         is_note ? "only a note: it moved hardly any data"
                                 : "only possible: no slow transfer and no log line points to it"});
      }
    for (const HostSamples* const host : hosts)
      for (const LinkTrouble& use : host->uses) alone.push_back({host, &use, true, ""});
    for (Finding& finding : findings_of(kLinkCounters, "", alone)) {
      if (finding.severity > Severity::kNote) finding.statement += ", a possible cause of delays";
      findings_.push_back(std::move(finding));
    }
  }

  const std::vector<HostSamples>& hosts_;
  const std::vector<Evidence>& evidence_;
  std::vector<Finding>& findings_;
  std::set<const LinkTrouble*> confirmed_, likely_, reported_;  // reported_: by a finding about several hosts
  std::set<std::pair<const LinkTrouble*, const Finding*>> cited_;  // while no finding is added
};

}  // namespace

void add_link_evidence(const std::vector<HostSamples>& hosts, const std::vector<Evidence>& evidence,
                       std::vector<Finding>& findings) {
  Joining(hosts, evidence, findings).run();
}

std::string link_samples_sentence(const std::vector<HostSamples>& hosts) {
  size_t devices = 0, unreadable = 0, full = 0;
  std::set<std::pair<std::string, std::string>> troubled;
  int64_t first = 0, last = 0;
  for (const HostSamples& host : hosts) {
    devices += host.watched;
    unreadable += host.unreadable;
    for (const auto* const troubles : {&host.troubles, &host.gpu_troubles})
      for (const LinkTrouble& trouble : *troubles) troubled.emplace(host.host, trouble.device);
    full += host.is_full;
    first = first == 0 ? host.first_ns : std::min(first, host.first_ns);
    last = std::max(last, host.last_ns);
  }
  std::string text = plural(hosts.size(), "host") + ", " + plural(devices, "device") + ", from " +
                     format_time(first) + " to " + format_time(last) + ": " +
                     (!troubled.empty() ? "trouble with " + plural(troubled.size(), "device")
                      : devices == 0    ? "no error counter could be read"
                                        : "no error counter rose");
  if (devices > 0 && unreadable > 0) text += "; " + plural(unreadable, "device") + " could not be read";
  if (full > 0) text += "; " + plural(full, "host") + " stopped sampling when its log was full";
  return text;
}

}  // namespace lockstep::verdict
