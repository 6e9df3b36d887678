// SPDX-License-Identifier: Apache-2.0
// Clocks are aligned by matched operations, so matching comes first. Analyses do not see each other's
// findings: each can be tested, and be wrong, by itself. Only completeness, the last, looks at all of them.
// The verdict is the most severe finding, of those the costliest; a note never is, as a healthy run has
// notes, too.
#include <algorithm>

#include "analysis/analysis.h"
#include "job/clock/clock.h"
#include "job/match/match.h"
#define ANALYSIS(folder)                 \
  namespace lockstep::analysis::folder { \
  extern const Analysis kAnalysis;       \
  }
#include "analysis/analyses.def"
#undef ANALYSIS

namespace lockstep::analysis {
namespace {

constexpr const Analysis* kAnalyses[] = {
#define ANALYSIS(folder) &folder::kAnalysis,
#include "analysis/analyses.def"
#undef ANALYSIS
};

bool more_important(const Finding& a, const Finding& b) {
  return a.severity != b.severity ? a.severity > b.severity : a.weight > b.weight;
}

}  // namespace

std::span<const Analysis* const> all() { return kAnalyses; }

Diagnosis diagnose(model::Job& job, bool of_now) {
  job::match::align(job);
  std::vector<Finding> findings;
  job::clock::align(job, findings);
  for (const Analysis* analysis : all()) {
    if (!of_now || analysis->is_of_now) analysis->run(job, findings);
  }
  return in_order(std::move(findings));
}

Diagnosis in_order(std::vector<Finding> findings) {
  Diagnosis diagnosis{std::move(findings), std::nullopt};
  // Of findings that are equally important the order of analyses.def decides.
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(), more_important);
  if (!diagnosis.findings.empty() && diagnosis.findings.front().severity > Severity::kNote)
    diagnosis.verdict = 0;
  return diagnosis;
}

}  // namespace lockstep::analysis
