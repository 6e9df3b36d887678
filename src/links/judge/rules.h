// SPDX-License-Identifier: Apache-2.0
// The rows of judge/counter_rules.def.
#pragma once
#include <span>
#include <string_view>

#include "analysis/finding.h"
#include "links/counters.h"

namespace lockstep::links {

struct Rule {
  DeviceKind kind;
  std::string_view name;  // of the counter; "*x*": a part of it
  // What healthy links reach: only more than this is a finding; 0: any increase is.
  double per_second;
  int number;
  analysis::FindingId finding;
  analysis::Severity severity;
  std::string_view says, remedy;
};

std::span<const Rule> rules();
// Whether the rule is about this counter of this kind of device.
bool matches(const Rule& rule, const CounterKey& key);
// Congestion and reordering are none of any link.
bool is_fault(const Rule& rule);

}  // namespace lockstep::links
