// SPDX-License-Identifier: Apache-2.0
// A finding names ranks in words, and a page draws links. Its class decides which links it can mean, and the
// comparison that it was drawn from says which of them were slow. Without that, every link between two named
// ranks would be marked. Links are compared anew only if a finding needs it.
#include "report/named_links.h"

#include <algorithm>

#include "analysis/network/slowness.h"

namespace lockstep::report {

using analysis::FindingClass;
using analysis::FindingId;

NamedLinks::NamedLinks(const ReportContext& context, const std::vector<analysis::network::Link>& links)
    : context_(context) {
  const auto& findings = context.run().diagnosis.findings;
  bool by_rate = false;
  for (size_t i = 0; i < findings.size(); ++i) {
    const auto how = about(findings[i]);
    if (!how) continue;
    candidates_.push_back({i, *how});
    by_rate = by_rate || *how == About::kSlowPairs || *how == About::kSlowEnds;
  }
  if (!by_rate) return;
  // A finding names ranks; which of their links it means is what it was drawn from.
  for (const auto& of : analysis::network::compare(context.job(), links)) {
    if (of.slow) slow_.emplace(of.pair.comm, of.pair.source_process, of.pair.target_process);
  }
}

std::optional<NamedLinks::About> NamedLinks::about(const analysis::Finding& finding) {
  switch (class_of(finding.id)) {
    case FindingClass::kSlowNic:
      return About::kSlowEnds;
    case FindingClass::kStuckInNetwork:
      return About::kBetweenHosts;
    case FindingClass::kSlowLink:
      if (finding.id == FindingId::kSlowLink || finding.id == FindingId::kSlowLinkHosts)
        return About::kSlowPairs;
      if (finding.id == FindingId::kSlowLinkIntraHost) return About::kWithinHost;
      // The others are about how a host or communicator is set up, and name no link.
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<size_t> NamedLinks::finding(uint32_t comm, uint32_t source, uint32_t target) const {
  for (const Candidate& candidate : candidates_) {
    if (means(candidate, comm, source, target)) return candidate.finding;
  }
  return std::nullopt;
}

bool NamedLinks::means(const Candidate& candidate, uint32_t comm, uint32_t source, uint32_t target) const {
  const std::vector<uint32_t>& named = context_.processes_of(candidate.finding);
  const bool is_source = std::binary_search(named.begin(), named.end(), source);
  const bool is_target = std::binary_search(named.begin(), named.end(), target);
  const bool both = is_source && is_target;
  switch (candidate.about) {
    case About::kSlowPairs:
      return both && slow_.contains({comm, source, target});
    case About::kSlowEnds:
      return (is_source || is_target) && slow_.contains({comm, source, target});
    case About::kWithinHost:
    case About::kBetweenHosts:
      break;
  }
  if (!both || source == target || context_.comm_of(candidate.finding).value_or(comm) != comm) return false;
  const auto& processes = context_.job().processes;
  return (processes[source].host == processes[target].host) == (candidate.about == About::kWithinHost);
}

}  // namespace lockstep::report
