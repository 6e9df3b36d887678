// SPDX-License-Identifier: Apache-2.0
// A run of which a part is missing is not healthy for all that is known: where the other analyses found
// nothing wrong, the verdict is CANNOT TELL. What rests on damaged records is dropped. It is the last
// analysis in analyses.def, as it looks at the findings of all others.
#include <algorithm>
#include <set>

#include "analysis/analysis.h"
#include "analysis/finding_hosts.h"
#include "base/text/wording.h"
#include "model/event_counts.h"
#include "model/record_gaps.h"

namespace lockstep::analysis::completeness {
namespace {

// What a finding says of a rank rests on its record, and who takes turns on those of all. True if any was
// dropped.
bool drop_unproven(const model::Job& job, const std::vector<model::RecordGap>& gaps,
                   std::vector<Finding>& findings) {
  std::set<int32_t> unproven;
  bool any_gap = false;
  for (uint32_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i].unproven) unproven.insert(job.processes[i].row.rank);
    any_gap = any_gap || gaps[i].any();
  }
  // These say themselves what is missing.
  const size_t dropped = std::erase_if(findings, [&](const Finding& finding) {
    if (class_of(finding.id) == FindingClass::kEvidenceMissing) return false;
    return (any_gap && class_of(finding.id) == FindingClass::kImbalance) ||
           std::any_of(finding.ranks.begin(), finding.ranks.end(),
                       [&](int32_t rank) { return unproven.contains(rank); });
  });
  return dropped != 0;
}

// Ranks may well have unequal work, so this is a note.
void note_uneven_kernels(const model::Job& job, std::vector<Finding>& findings) {
  std::vector<uint32_t> processes;  // that take part in communication, or run kernels
  std::vector<uint64_t> kernels;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    if (job.processes[i].members.empty() && job.processes[i].kernels == 0) continue;
    processes.push_back(i);
    kernels.push_back(job.processes[i].kernels);
  }
  const std::vector<size_t> uneven = model::uneven_places(kernels);
  if (uneven.empty()) return;
  constexpr size_t kMostListed = 8;
  Finding finding(FindingId::kEvidenceMissingUnevenKernels);
  const size_t fullest =
      static_cast<size_t>(std::max_element(kernels.begin(), kernels.end()) - kernels.begin());
  const auto line_of = [&](size_t i) {
    return job.process_name(processes[i]) + ": " + wording::count(kernels[i], "kernel");
  };
  for (const size_t i : uneven) {
    if (finding.evidence.size() < kMostListed) finding.evidence.push_back(line_of(i));
    const int32_t rank = job.processes[processes[i]].row.rank;
    if (rank >= 0) finding.ranks.push_back(rank);
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.evidence.push_back(line_of(fullest));
  finding.statement =
      job.process_name(processes[uneven[0]]) + " ran " + wording::count(kernels[uneven[0]], "kernel") + ", " +
      job.process_name(processes[fullest]) + " " + wording::count(kernels[fullest], "kernel") +
      (uneven.size() > 1
           ? ", and " + wording::count(uneven.size() - 1, "process") + " less than half of that too"
           : "") +
      ": less work, or a recording that lacks a part";
  finding.advice = "Check whether the recordings cover the same time; `lockstep info` lists them.";
  findings.push_back(std::move(finding));
}

void run(const model::Job& job, std::vector<Finding>& findings) {
  note_uneven_kernels(job, findings);
  const std::vector<model::RecordGap> gaps = model::record_gaps(job);
  const bool dropped = drop_unproven(job, gaps, findings);
  const bool is_decided = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity > Severity::kNote;
  });
  if (is_decided) return;
  Finding finding(FindingId::kEvidenceMissingIncomplete);
  std::vector<std::string> names;
  std::string missing;
  for (uint32_t i = 0; i < gaps.size(); ++i) {
    // A slight gap leaves the verdict as it is, unless a finding was dropped for it.
    const bool matters = !gaps[i].slight || gaps[i].unproven || dropped;
    if (!gaps[i].any() || !matters) continue;
    if (names.empty()) missing = gaps[i].text;
    names.push_back(job.process_name(i));
    finding.evidence.push_back(names.back() + "'s file: " + gaps[i].text);
    if (job.processes[i].row.rank >= 0) finding.ranks.push_back(job.processes[i].row.rank);
    add_host(finding, job.text(job.processes[i].row.host));
  }
  if (names.empty()) return;
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.statement = wording::incomplete(names, missing) + "; what can be read shows no problem";
  finding.advice = wording::kCopyAgain;
  finding.needed_evidence = wording::kWholeFiles;
  findings.push_back(std::move(finding));
}

}  // namespace

extern const Analysis kAnalysis = {
    .name = "completeness", .question = "Is the record whole enough to call the job healthy?", .run = run};

}  // namespace lockstep::analysis::completeness
