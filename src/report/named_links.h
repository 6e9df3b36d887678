// SPDX-License-Identifier: Apache-2.0
// Which traffic the findings on the network are about, link by link: the ranks that a finding names may also
// exchange much that it does not mean, on other communicators or the other way.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "analysis/network/links.h"
#include "report/report_context.h"

namespace lockstep::report {

class NamedLinks {
 public:
  // `links`: of the context's job.
  NamedLinks(const ReportContext& context, const std::vector<analysis::network::Link>& links);
  // The first finding about what one process sends to another on a communicator; each may be kNoRow.
  std::optional<size_t> finding(uint32_t comm, uint32_t source, uint32_t target) const;

 private:
  // How a finding tells which links it means.
  enum class About { kSlowPairs, kSlowEnds, kWithinHost, kBetweenHosts };
  struct Candidate {
    size_t finding;
    About about;
  };
  static std::optional<About> about(const analysis::Finding& finding);
  bool means(const Candidate& candidate, uint32_t comm, uint32_t source, uint32_t target) const;

  const ReportContext& context_;
  std::vector<Candidate> candidates_;
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> slow_;  // comm, source, target
};

}  // namespace lockstep::report
