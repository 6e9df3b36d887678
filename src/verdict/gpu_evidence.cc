// SPDX-License-Identifier: Apache-2.0
// Sets what happened to GPUs beside the findings about them. Who is late is measured on the operations, never
// here: a low clock explains a late GPU and makes nobody late. Only what would explain the class of a finding
// is looked at: clocks for a GPU that is late, memory errors and Xids also for one that is stuck, and for a
// process that died.
#include "verdict/gpu_evidence.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "verdict/transfers.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingClass;
using analysis::FindingId;
using analysis::Severity;
using links::HostSamples;
using links::LinkTrouble;

constexpr int64_t kBeforeOnsetNs = 60'000'000'000;  // since when somebody is late is known to tens of seconds
constexpr double kLowClock = 0.95;  // of the others' median; GPUs of one kind and load differ by less
constexpr size_t kMostGpuLines = 3, kMostGpusNamed = 4;

bool is_about_clocks(const LinkTrouble& trouble) { return trouble.id == FindingId::kGpuLateThrottled; }
bool is_xid(const LinkTrouble& trouble) { return trouble.id == FindingId::kAbortedXid; }

bool may_explain(const LinkTrouble& trouble, const Finding& finding) {
  switch (class_of(finding.id)) {
    case FindingClass::kGpuLate:
      return true;
    case FindingClass::kStuckInGpu:
    case FindingClass::kRankDead:
    case FindingClass::kAborted:
      return !is_about_clocks(trouble);
    default:
      return false;
  }
}

bool is_about_gpus(const Finding& finding) {
  const FindingClass of = class_of(finding.id);
  return finding.severity > Severity::kNote &&
         (of == FindingClass::kGpuLate || of == FindingClass::kStuckInGpu || of == FindingClass::kRankDead ||
          of == FindingClass::kAborted);
}

// What rose or ended long before the trouble began did not begin it.
bool is_in_time(const LinkTrouble& trouble, const Finding& finding) {
  return !finding.since_ns || std::any_of(trouble.times_ns.begin(), trouble.times_ns.end(), [&](int64_t at) {
    return at >= *finding.since_ns - kBeforeOnsetNs;
  });
}

std::string mhz(uint64_t clock) { return std::to_string(clock) + " MHz"; }

class GpuJoining {
 public:
  GpuJoining(const std::vector<const HostSamples*>& hosts, const std::vector<Evidence>& evidence,
             std::vector<Finding>& findings)
      : hosts_(hosts), evidence_(evidence), findings_(findings) {}

  void run() {
    for (const HostSamples* const host : hosts_)
      for (Finding& finding : findings_)
        if (is_about_gpus(finding)) explain(finding, *host);
    add_others();
  }

 private:
  // Of the ranks that a finding names, as kernels write their addresses.
  std::set<std::string> gpus_of(const Finding& finding, const std::string& host) const {
    std::set<std::string> gpus;
    for (const Evidence& evidence : evidence_) {
      if (!evidence.job) continue;
      const model::Job& job = *evidence.job;
      for (uint32_t i = 0; i < job.processes.size(); ++i) {
        const model::Process& row = job.processes[i].row;
        if (job.text(row.host) != host ||
            !std::binary_search(finding.ranks.begin(), finding.ranks.end(), row.rank))
          continue;
        if (const std::string pci = kernel_address(job.who(i).pci); !pci.empty()) gpus.insert(pci);
      }
    }
    return gpus;
  }

  // All that processes of the run use on a host; nothing where that is not known of each.
  std::optional<std::set<std::string>> used_on(const std::string& host) const {
    std::set<std::string> gpus;
    for (const Evidence& evidence : evidence_) {
      if (!evidence.job) continue;
      const model::Job& job = *evidence.job;
      for (uint32_t i = 0; i < job.processes.size(); ++i) {
        if (job.text(job.processes[i].row.host) != host) continue;
        const std::string pci = kernel_address(job.who(i).pci);
        if (pci.empty()) return std::nullopt;
        gpus.insert(pci);
      }
    }
    if (gpus.empty()) return std::nullopt;
    return gpus;
  }

  void explain(Finding& finding, const HostSamples& host) {
    if (finding.id == FindingId::kAbortedXid && is_on(finding, host.host)) confirm(finding, host);
    const std::set<std::string> gpus = gpus_of(finding, host.host);
    if (gpus.empty()) return;
    bool is_explained = false;
    for (const LinkTrouble& trouble : host.gpu_troubles) {
      if (!gpus.contains(trouble.device) || !may_explain(trouble, finding) || !is_in_time(trouble, finding))
        continue;
      // A short slowdown, or a Xid that a program's end brings, is seldom a cause.
      const bool is_likely = trouble.severity > Severity::kNote;
      cite(is_likely ? "likely" : "possible", trouble, host, finding);
      if (is_likely) advise(trouble.remedy, finding);
      is_explained = is_explained || is_likely;
    }
    if (class_of(finding.id) == FindingClass::kGpuLate)
      for (const std::string& gpu : gpus) compare_clocks(gpu, host, is_explained, finding);
  }

  // The driver tells both the kernel's log and us.
  void confirm(Finding& finding, const HostSamples& host) {
    for (const LinkTrouble& trouble : host.gpu_troubles) {
      const size_t xid = trouble.says.find("Xid");
      // The kernel names a device without its function.
      if (!is_xid(trouble) || xid == trouble.says.npos ||
          !mentions(finding, trouble.says.substr(xid, trouble.says.find(':') - xid)) ||
          !mentions(finding, trouble.device.substr(0, trouble.device.rfind('.'))))
        continue;
      cite("confirmed", trouble, host, finding);
      advise(trouble.remedy, finding);
    }
  }

  void compare_clocks(const std::string& gpu, const HostSamples& host, bool is_explained, Finding& finding) {
    const auto own = host.sm_clocks.find(gpu);
    if (own == host.sm_clocks.end()) return;
    // Of what other jobs do, or nobody, a clock says nothing about this one.
    const auto used = used_on(host.host);
    std::vector<uint64_t> others;
    for (const auto& [device, clock] : host.sm_clocks)
      if (device != gpu && used && used->contains(device)) others.push_back(clock);
    const bool was_slowed = std::any_of(
        host.gpu_troubles.begin(), host.gpu_troubles.end(),
        [&](const LinkTrouble& trouble) { return trouble.device == gpu && is_about_clocks(trouble); });
    const std::string of = std::string(kGpuCounters) + ": ";
    const std::string who = wording::name(gpu) + " of " + wording::name(host.host) + ": " +
                            (was_slowed ? "" : "not slowed down; ");
    if (others.empty()) {
      if (!is_explained)
        finding.evidence.push_back(of + who + "its SM clock was " + mhz(own->second) +
                                   " (median), and no other GPU is known to do the same work there");
      return add_source(finding);
    }
    std::nth_element(others.begin(), others.begin() + static_cast<ptrdiff_t>(others.size() / 2),
                     others.end());
    const uint64_t usual = others[others.size() / 2];
    const std::string clocks =
        "its SM clock was " + mhz(own->second) + " (median), the others' " + mhz(usual);
    if (static_cast<double>(own->second) < kLowClock * static_cast<double>(usual)) {
      finding.evidence.push_back(of + "likely: " + wording::name(gpu) + " of " + wording::name(host.host) +
                                 ": " + clocks);
      if (!is_explained)
        advise(
            "Compare power limit, clock settings and heat of that GPU with the others': "
            "`nvidia-smi -q -d CLOCK,POWER,PERFORMANCE`.",
            finding);
    } else if (!is_explained) {
      finding.evidence.push_back(of + who + clocks);
    }
    add_source(finding);
  }

  void cite(std::string_view word, const LinkTrouble& trouble, const HostSamples& host, Finding& finding) {
    const std::string of = std::string(kGpuCounters) + ": ";
    finding.evidence.push_back(of + std::string(word) + ": " + wording::name(trouble.device) + " of " +
                               wording::name(host.host) + ": " + trouble.says);
    for (size_t i = 0; i < std::min(trouble.evidence.size(), kMostGpuLines); ++i)
      finding.evidence.push_back(of + trouble.evidence[i]);
    add_source(finding);
    cited_.insert(&trouble);
  }

  static void advise(const std::string& remedy, Finding& finding) {
    if (finding.advice.find(remedy) == std::string::npos)
      finding.advice += (finding.advice.empty() ? "" : " ") + remedy;
  }

  static void add_source(Finding& finding) {
    const std::string name(kGpuCounters);
    if (std::find(finding.sources.begin(), finding.sources.end(), name) == finding.sources.end())
      finding.sources.push_back(name);
  }

  // One finding for all GPUs with one trouble: a rack that grows hot takes many along.
  void add_others() {
    using Key = std::tuple<std::string_view, std::string, Severity, bool>;  // at last: no process uses it
    std::map<Key, Finding> by_trouble;
    std::map<Key, std::vector<std::string>> devices;
    for (const HostSamples* const host : hosts_) {
      const auto used = used_on(host->host);
      for (const LinkTrouble& trouble : host->gpu_troubles) {
        if (cited_.contains(&trouble)) continue;
        // Another job's GPU does nothing to this one.
        const bool is_unused = used && !used->contains(trouble.device);
        const Severity severity = is_unused ? Severity::kNote : trouble.severity;
        const Key key(id_text(trouble.id), trouble.says, severity, is_unused);
        Finding& finding = by_trouble.try_emplace(key, trouble.id).first->second;
        finding.severity = severity;
        finding.advice = trouble.remedy;
        if (!is_on(finding, host->host)) finding.hosts.push_back(host->host);
        devices[key].push_back(wording::name(trouble.device) + " of " + wording::name(host->host));
        for (const std::string& line : trouble.evidence)
          if (finding.evidence.size() < kMostGpuLines * kMostGpusNamed)
            finding.evidence.push_back(wording::name(host->host) + ", " + line);
      }
    }
    for (auto& [key, finding] : by_trouble) {
      const std::vector<std::string>& named = devices[key];
      finding.statement = "GPU ";
      for (size_t i = 0; i < std::min(named.size(), kMostGpusNamed); ++i)
        finding.statement += (i == 0 ? "" : ", ") + named[i];
      if (named.size() > kMostGpusNamed)
        finding.statement += " and " + wording::count(named.size() - kMostGpusNamed, "other");
      finding.statement += ": " + std::get<1>(key) + " while the job ran";
      if (std::get<bool>(key))
        finding.evidence.push_back("only a note: no process of this run uses it");
      else if (finding.severity > Severity::kNote)
        finding.evidence.push_back(
            "only possible: as far as this run shows, no rank was late, stuck or dead because of it");
      finding.sources = {std::string(kGpuCounters)};
      findings_.push_back(std::move(finding));
    }
  }

  const std::vector<const HostSamples*>& hosts_;
  const std::vector<Evidence>& evidence_;
  std::vector<Finding>& findings_;
  std::set<const LinkTrouble*> cited_;
};

}  // namespace

void add_gpu_evidence(const std::vector<const HostSamples*>& hosts, const std::vector<Evidence>& evidence,
                      std::vector<Finding>& findings) {
  GpuJoining(hosts, evidence, findings).run();
}

}  // namespace lockstep::verdict
