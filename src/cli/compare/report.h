// SPDX-License-Identifier: Apache-2.0
// What `compare` says: as text, and as the JSON that docs/compare.md describes.
#pragma once
#include <string>
#include <vector>

#include "base/text/json_text.h"
#include "base/text/style.h"
#include "cli/compare/compared_runs.h"
#include "cli/compare/gate.h"

namespace lockstep::cli::compare {

struct GateReport {
  std::vector<Gate> gates;
  std::vector<GateResult> results;  // of each
};

struct TextOptions {
  size_t limit = 20;  // rows of the table
  bool all = false;   // also rows that did not change
};
std::string report_text(const ComparedRuns& runs, const GateReport& gates, const Style& style,
                        TextOptions options);

// The part `comparison` of a report's data, at most `limit` rows of it.
Json comparison_json(const ComparedRuns& runs, size_t limit);
// The document of `--json`.
Json report_json(const ComparedRuns& runs, const GateReport& gates);

}  // namespace lockstep::cli::compare
