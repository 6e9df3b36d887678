// SPDX-License-Identifier: Apache-2.0
// Who the ranks of findings are, with what any kind of evidence knows of them: a dump knows no host and no
// pid, a log does.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "verdict/join/join.h"

namespace lockstep::verdict::join {

class People {
 public:
  // `sources` outlive it.
  explicit People(const std::vector<EvidenceSource>& sources);

  // Fills Finding::who of a finding that the source `own` has made: a process for each rank, and those
  // without one.
  void name(size_t own, analysis::Finding& finding) const;
  void add_hosts(size_t own, analysis::Finding& finding) const;  // likewise

 private:
  const std::vector<EvidenceSource>& sources_;
  std::vector<std::map<int32_t, uint32_t>> processes_;  // by source and rank: the newest
};

}  // namespace lockstep::verdict::join
