// SPDX-License-Identifier: Apache-2.0
// A run of which a part is missing is not healthy for all that is known: where the other analyses found nothing wrong, the
// verdict is that it cannot be told. What rests on damaged records is dropped. The last one to run.
#include <algorithm>
#include <set>

#include "analysis/analysis.h"
#include "analysis/wording/wording.h"
#include "model/record_gaps.h"

namespace lockstep::analysis::completeness {
namespace {

// What a finding says of a rank rests on its record, and who takes turns on those of all. True if any was dropped.
bool drop_unproven(const model::Job& job, const std::vector<model::RecordGap>& gaps,
                   std::vector<Finding>& findings) {
  std::set<int32_t> unproven;
  bool any_gap = false;
  for (uint32_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i].unproven) unproven.insert(job.processes[i].row.rank);
    any_gap = any_gap || gaps[i].any();
  }
  const size_t dropped = std::erase_if(findings, [&](const Finding& finding) {
    if (finding.finding_class == FindingClass::kEvidenceMissing) return false;
    return (any_gap && finding.finding_class == FindingClass::kImbalance) ||
           std::any_of(finding.ranks.begin(), finding.ranks.end(),
                       [&](int32_t rank) { return unproven.contains(rank); });
  });
  return dropped != 0;
}

void run(const model::Job& job, std::vector<Finding>& findings) {
  const std::vector<model::RecordGap> gaps = model::record_gaps(job);
  const bool dropped = drop_unproven(job, gaps, findings);
  const bool is_decided = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity > Severity::kNote;
  });
  if (is_decided) return;
  Finding finding;
  std::vector<std::string> names;
  std::string missing;
  for (uint32_t i = 0; i < gaps.size(); ++i) {
    const bool matters = !gaps[i].slight || gaps[i].unproven || dropped;
    if (!gaps[i].any() || !matters) continue;
    if (names.empty()) missing = gaps[i].text;
    names.push_back(job.process_name(i));
    finding.evidence.push_back(names.back() + "'s file: " + gaps[i].text);
    if (job.processes[i].row.rank >= 0) finding.ranks.push_back(job.processes[i].row.rank);
    const std::string host(job.text(job.processes[i].row.host));
    if (!host.empty() && std::find(finding.hosts.begin(), finding.hosts.end(), host) == finding.hosts.end())
      finding.hosts.push_back(host);
  }
  if (names.empty()) return;
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.id = "evidence-missing.incomplete";
  finding.finding_class = FindingClass::kEvidenceMissing;
  finding.severity = Severity::kWarning;
  finding.statement =
      wording::incomplete(names, missing) + "; in what can be read there is nothing wrong to be seen";
  finding.advice = wording::kCopyAgain;
  finding.settle = wording::kWholeFiles;
  findings.push_back(std::move(finding));
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "completeness", .question = "Is the record whole enough to call the job healthy?", .run = run};

}  // namespace lockstep::analysis::completeness
