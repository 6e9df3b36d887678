// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the readers of what other tools print about links, and judges what they make of
// it: alone and against itself.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "links/judge/facts.h"
#include "links/judge/judge.h"
#include "links/printed/printed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace links = lockstep::links;
  const auto record = links::parse_any({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!record) return 0;
  if (record->traffic)
    for (const links::Cell& cell : record->traffic->cells)
      for (const double sample : cell.samples)
        if (!std::isfinite(sample)) std::abort();
  for (const links::LinksRecord* const baseline : {static_cast<const links::LinksRecord*>(nullptr), &*record})
    for (const auto& finding : links::judge(*record, baseline))
      if (finding.statement.empty()) std::abort();
  for (const links::LinkFact& fact : links::facts_of(*record).facts)
    if (fact.device.empty() || fact.says.empty() || (fact.is_trouble() && fact.remedy.empty())) std::abort();
  return 0;
}
