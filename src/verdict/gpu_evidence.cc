// SPDX-License-Identifier: Apache-2.0
// Sets what happened to GPUs beside the findings about them. Who is late is measured on the operations, never
// here: a low clock explains a late GPU and makes nobody late. Only what would explain the class of a finding
// is looked at: clocks for a GPU that is late, memory errors and Xids also for one that is stuck, and for a
// process that died.
#include "verdict/gpu_evidence.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text/wording.h"
#include "verdict/device_evidence.h"
#include "verdict/transfers.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingClass;
using analysis::FindingId;
using analysis::Severity;
using links::HostSamples;
using links::LinkTrouble;

constexpr double kLowClock = 0.95;  // of the others' median; GPUs of one kind and load differ by less

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
  // Of the ranks that a finding names.
  std::set<std::string> gpus_of(const Finding& finding, const std::string& host) const {
    std::set<std::string> gpus;
    for (const ProcessOfRun& process : processes_on(host, evidence_, finding))
      if (std::string pci = process.pci(); !pci.empty()) gpus.insert(std::move(pci));
    return gpus;
  }

  // All that processes of the run use on a host; nothing where that is not known of each.
  std::optional<std::set<std::string>> used_on(const std::string& host) const {
    std::set<std::string> gpus;
    for (const ProcessOfRun& process : processes_on(host, evidence_)) {
      std::string pci = process.pci();
      if (pci.empty()) return std::nullopt;
      gpus.insert(std::move(pci));
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
      // Other GPUs of the host are no cause: each rank runs on its own.
      if (!gpus.contains(trouble.device) || !may_explain(trouble, finding) || !is_in_time(trouble, finding))
        continue;
      // A short slowdown, or a Xid that a program's end brings, is seldom a cause.
      const bool is_likely = trouble.severity > Severity::kNote;
      cite(is_likely ? "likely" : "possible", trouble, host, finding);
      if (is_likely) add_advice(trouble.remedy, finding);
      is_explained = is_explained || is_likely;
    }
    if (class_of(finding.id) == FindingClass::kGpuLate)
      for (const std::string& gpu : gpus) compare_clocks(gpu, host, is_explained, finding);
  }

  // The driver reports to both the kernel's log and us.
  void confirm(Finding& finding, const HostSamples& host) {
    for (const LinkTrouble& trouble : host.gpu_troubles) {
      const size_t xid = trouble.says.find("Xid");
      // The kernel names a device without its function.
      if (!is_xid(trouble) || xid == trouble.says.npos ||
          !mentions(finding, trouble.says.substr(xid, trouble.says.find(':') - xid)) ||
          !mentions(finding, trouble.device.substr(0, trouble.device.rfind('.'))))
        continue;
      cite("confirmed", trouble, host, finding);
      add_advice(trouble.remedy, finding);
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
      return add_source(kGpuCounters, finding);
    }
    // A median, as one GPU that idles or is slowed as well must not move it.
    std::nth_element(others.begin(), others.begin() + static_cast<ptrdiff_t>(others.size() / 2),
                     others.end());
    const uint64_t usual = others[others.size() / 2];
    const std::string clocks =
        "its SM clock was " + mhz(own->second) + " (median), the others' " + mhz(usual);
    if (static_cast<double>(own->second) < kLowClock * static_cast<double>(usual)) {
      finding.evidence.push_back(of + "likely: " + wording::name(gpu) + " of " + wording::name(host.host) +
                                 ": " + clocks);
      if (!is_explained)
        add_advice(
            "Compare power limit, clock settings and heat of that GPU with the others': "
            "`nvidia-smi -q -d CLOCK,POWER,PERFORMANCE`.",
            finding);
    } else if (!is_explained) {
      finding.evidence.push_back(of + who + clocks);
    }
    add_source(kGpuCounters, finding);
  }

  void cite(std::string_view word, const LinkTrouble& trouble, const HostSamples& host, Finding& finding) {
    verdict::cite(kGpuCounters, word, trouble, host.host, finding);
    cited_.insert(&trouble);
  }

  void add_others() {
    std::vector<TroubleAlone> alone;
    for (const HostSamples* const host : hosts_) {
      const auto used = used_on(host->host);
      for (const LinkTrouble& trouble : host->gpu_troubles) {
        if (cited_.contains(&trouble)) continue;
        // Another job's GPU does nothing to this one.
        if (used && !used->contains(trouble.device))
          alone.push_back({host, &trouble, true, "only a note: no process of this run uses it"});
        else if (trouble.severity == Severity::kNote)
          alone.push_back({host, &trouble, true, ""});
        else
          alone.push_back(
              {host, &trouble, false,
               "only possible: as far as this run shows, no rank was late, stuck or dead because of it"});
      }
    }
    // After all findings are explained, since the list grows and references into it would not stay valid.
    for (Finding& finding : findings_of(kGpuCounters, "GPU ", alone)) findings_.push_back(std::move(finding));
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
