// SPDX-License-Identifier: Apache-2.0
// Cites what happened to a device in findings about ranks. A device is joined by address: kernels, NVML and
// NCCL write one PCI address in different ways, so all are brought to the kernel's form first. Time is judged
// loosely, since clocks of counters and of records are two, and on one side only: trouble after the wait
// began may be its effect and is cited all the same.
#include "verdict/device_evidence.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text/wording.h"
#include "verdict/transfers.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::Severity;
using links::LinkTrouble;

// Connections are retried for tens of seconds before an operation is seen to stand still, and since when a
// rank is late is known to tens of seconds.
constexpr int64_t kBeforeNs = 60'000'000'000;
constexpr size_t kMostLinesCited = 3, kMostDevicesNamed = 4, kMostLinesAlone = 16;

std::vector<ProcessOfRun> processes(const std::string& host, const std::vector<Evidence>& evidence,
                                    const Finding* finding) {
  std::vector<ProcessOfRun> found;
  for (const Evidence& of : evidence) {
    if (!of.job) continue;
    for (uint32_t i = 0; i < of.job->processes.size(); ++i) {
      const model::Process& row = of.job->processes[i].row;
      if (of.job->text(row.host) == host &&
          // Ranks of a finding are ascending.
          (finding == nullptr || std::binary_search(finding->ranks.begin(), finding->ranks.end(), row.rank)))
        found.push_back({&*of.job, i});
    }
  }
  return found;
}

// Steps of the PCI tree that two devices share, from the root down. Paths as /sys has them: one part for each
// bridge on the way.
size_t common_parts(std::string_view a, std::string_view b) {
  size_t parts = 0;
  while (!a.empty() && a.substr(0, a.find('/')) == b.substr(0, b.find('/'))) {
    ++parts;
    a.remove_prefix(std::min(a.size(), a.substr(0, a.find('/')).size() + 1));
    b.remove_prefix(std::min(b.size(), b.substr(0, b.find('/')).size() + 1));
  }
  return parts;
}

std::string list_of(const std::vector<std::string>& devices) {
  std::string text;
  for (size_t i = 0; i < std::min(devices.size(), kMostDevicesNamed); ++i)
    text += (i == 0 ? "" : ", ") + devices[i];
  if (devices.size() > kMostDevicesNamed)
    text += " and " + wording::count(devices.size() - kMostDevicesNamed, "other");
  return text;
}

}  // namespace

std::string ProcessOfRun::pci() const { return kernel_address(job->who(index).pci); }
std::string ProcessOfRun::uuid() const { return std::string(job->text(job->processes[index].row.uuid)); }

std::vector<ProcessOfRun> processes_on(const std::string& host, const std::vector<Evidence>& evidence) {
  return processes(host, evidence, nullptr);
}
std::vector<ProcessOfRun> processes_on(const std::string& host, const std::vector<Evidence>& evidence,
                                       const Finding& finding) {
  return processes(host, evidence, &finding);
}

std::set<std::string> nearest_cards(std::string_view gpu, const links::HostSamples& host) {
  // Two parts of a path are the host bridge and the root port.
  size_t nearest = 2;
  for (const auto& [name, path] : host.cards) nearest = std::max(nearest, common_parts(gpu, path));
  std::set<std::string> paths;
  for (const auto& [name, path] : host.cards)
    if (common_parts(gpu, path) == nearest) paths.insert(path);
  return paths;
}

bool is_in_time(const LinkTrouble& trouble, const Finding& finding) {
  return !finding.since_ns || std::any_of(trouble.times_ns.begin(), trouble.times_ns.end(),
                                          [&](int64_t at) { return at >= *finding.since_ns - kBeforeNs; });
}

void add_source(std::string_view kind, Finding& finding) {
  if (std::find(finding.sources.begin(), finding.sources.end(), kind) == finding.sources.end())
    finding.sources.emplace_back(kind);
}

void add_advice(const std::string& advice, Finding& finding) {
  if (finding.advice.find(advice) == std::string::npos)
    finding.advice += (finding.advice.empty() ? "" : " ") + advice;
}

void cite(std::string_view kind, std::string_view word, const LinkTrouble& trouble, const std::string& host,
          Finding& finding) {
  const std::string of = std::string(kind) + ": ";
  finding.evidence.push_back(of + std::string(word) + ": " + wording::name(trouble.device) + " of " +
                             wording::name(host) + ": " + trouble.says);
  for (size_t i = 0; i < std::min(trouble.evidence.size(), kMostLinesCited); ++i)
    finding.evidence.push_back(of + trouble.evidence[i]);
  add_source(kind, finding);
}

std::vector<Finding> findings_of(std::string_view kind, std::string_view what,
                                 const std::vector<TroubleAlone>& troubles) {
  using Key = std::tuple<std::string_view, std::string_view, std::string>;  // id, remark, what it says
  struct Group {
    Finding finding;
    std::vector<std::string> devices;
  };
  std::map<Key, Group> groups;
  for (const TroubleAlone& alone : troubles) {
    const LinkTrouble& trouble = *alone.trouble;
    const std::string& host = alone.host->host;
    // Devices with one text are one trouble; what differs in a number is told apart.
    const Key key(id_text(trouble.id), alone.remark, trouble.says);
    const auto [at, is_new] = groups.try_emplace(key, Group{Finding(trouble.id), {}});
    Finding& finding = at->second.finding;
    const Severity severity = alone.is_note ? Severity::kNote : trouble.severity;
    finding.severity = is_new ? severity : std::max(finding.severity, severity);
    finding.advice = trouble.remedy;
    if (!is_on(finding, host)) finding.hosts.push_back(host);
    at->second.devices.push_back(wording::name(trouble.device) + " of " + wording::name(host));
    for (const std::string& line : trouble.evidence)
      if (finding.evidence.size() < kMostLinesAlone)
        finding.evidence.push_back(wording::name(host) + ", " + line);
  }
  std::vector<Finding> findings;
  for (auto& [key, group] : groups) {
    Finding& finding = group.finding;
    finding.statement =
        std::string(what) + list_of(group.devices) + ": " + std::get<std::string>(key) + " while the job ran";
    if (const std::string_view remark = std::get<1>(key); !remark.empty())
      finding.evidence.emplace_back(remark);
    finding.sources = {std::string(kind)};
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace lockstep::verdict
