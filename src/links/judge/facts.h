// SPDX-License-Identifier: Apache-2.0
// What a record says of each port, of each GPU, its NVLinks and each pair of GPUs, well or not: for who sets
// it beside what a job saw (verdict/link_checks.h). Nothing in it has a time, so nothing proves a cause.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "links/record.h"

namespace lockstep::links {

struct LinkFact {
  enum class Of : uint8_t { kPort, kNvlinks, kPair, kGpu } of{};
  std::string device;  // "mlx5_0/1"; of a GPU its PCI address, or its UUID where that is unknown
  std::string to;      // of a pair, the GPU that the data comes to
  std::string name;    // "mlx5_0", "GPU 1": as findings of judge() have it
  std::string words;   // "mlx5_0/1", "GPU 1 to GPU 2"
  std::string says;    // "is not active: DOWN, Polling"
  std::optional<analysis::FindingId> finding;  // of judge() about the same; none: it is well
  std::string remedy;                          // empty if it is well
  bool has_state = true;                       // of a port; else the record has its counters alone
  std::vector<std::string> lines;              // of the tool's text, with their numbers: "14: State: Down"
  bool is_trouble() const { return finding.has_value(); }
};

struct LinkFacts {
  std::string host;  // empty: the record does not say
  std::vector<LinkFact> facts;
  std::vector<std::string> uuids;  // of its GPUs, as far as they are known
  // By a GPU's PCI address, the cards ("mlx5_0") that share most switches with it; none: not known.
  std::map<std::string, std::set<std::string>> nearest;
};
// `baseline`: an earlier record of the same links, or nullptr: errors that rose since are troubles.
LinkFacts facts_of(const LinksRecord& record, const LinksRecord* baseline = nullptr);

// Whether both are of one boot of a host, or of the same GPUs by UUID, and `a` is the earlier: by its time,
// else by its counters, none of which is higher.
bool is_earlier(const LinksRecord& a, const LinksRecord& b);

}  // namespace lockstep::links
