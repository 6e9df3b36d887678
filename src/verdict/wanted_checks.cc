// SPDX-License-Identifier: Apache-2.0
// Names commands instead of guessing: a transfer may be slow because of its link, of congestion or of a busy
// peer, and without a counter or a check only the host itself can tell which. AMD's tools are named if a GPU
// of the named hosts is AMD's, as NVIDIA's would only fail there.
#include "verdict/wanted_checks.h"

#include <algorithm>

#include "base/text/wording.h"
#include "model/names/who.h"
#include "verdict/link_checks.h"
#include "verdict/link_evidence.h"
#include "verdict/transfers.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;

constexpr size_t kMostHostsNamed = 3;

bool is_looked_at(const Finding& finding) {
  return std::any_of(finding.sources.begin(), finding.sources.end(), [](const std::string& source) {
    return source == kLinkCounters || source == kLinkChecks;
  });
}

bool has_amd_gpus(const Finding& finding, const std::vector<Evidence>& evidence) {
  for (const Evidence& of : evidence) {
    if (!of.job) continue;
    for (const model::JobProcess& process : of.job->processes) {
      if (!is_on(finding, std::string(of.job->text(process.row.host)))) continue;
      if (model::is_amd(process.row, of.job->strings)) return true;
    }
  }
  return false;
}

std::string on_hosts(const Finding& finding) {
  if (finding.hosts.empty()) return "";
  std::string text = " on ";
  for (size_t i = 0; i < std::min(finding.hosts.size(), kMostHostsNamed); ++i)
    text += (i == 0 ? "" : ", ") + wording::name(finding.hosts[i]);
  if (finding.hosts.size() > kMostHostsNamed)
    text += " and " + wording::count(finding.hosts.size() - kMostHostsNamed, "other");
  return text;
}

}  // namespace

void add_wanted_checks(const std::vector<Evidence>& evidence, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    // Of transport errors NCCL's log says it already, and link checks name what they have looked at.
    if (!is_about_transfers(finding) || class_of(finding.id) == analysis::FindingClass::kTransportError ||
        !finding.needed_evidence.empty() || is_looked_at(finding))
      continue;
    const bool is_amd = has_amd_gpus(finding, evidence);
    finding.needed_evidence =
        is_within_host(finding)
            ? "the state of these links, which was not recorded: run " +
                  std::string(is_amd ? "`rocm-smi --showxgmierr`"
                                     : "`nvidia-smi nvlink -s` and `nvidia-smi nvlink -e`") +
                  on_hosts(finding) +
                  " to see whether one is down or has errors, and `lockstep links` to see how fast they are"
            : "the counters of these ports, which were not recorded: run `ibstat`" + on_hosts(finding) +
                  " to see whether one is down or slow, and `perfquery -x` (InfiniBand) or "
                  "`rdma statistic` (RoCE) twice to see whether errors rise; `lockstep trace` records them";
  }
}

}  // namespace lockstep::verdict
