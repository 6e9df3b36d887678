// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/diagnosed_run.h"

#include <algorithm>

#include "analysis/gather/gather.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/liveness.h"

namespace lockstep::cli::diagnose {

using analysis::Finding;
using analysis::FindingClass;

Result<DiagnosedRun> diagnose(const std::vector<std::string>& paths,
                              const std::function<void(double)>& progress) {
  LOCKSTEP_ASSIGN(Input input, open_input(paths));
  DiagnosedRun run;
  run.name = input.source->name();
  LOCKSTEP_ASSIGN(run.job, analysis::gather::gather(*input.source, {.threads = 0, .progress = progress}));
  set_liveness(paths, run.job);
  run.diagnosis = analysis::diagnose(run.job);
  run.matches = analysis::match::count_matches(run.job);
  return run;
}

bool cannot_tell(const Finding& finding) {
  return finding.finding_class == FindingClass::kEvidenceMissing ||
         finding.finding_class == FindingClass::kTooManyFailed;
}

int exit_code(const analysis::Diagnosis& diagnosis) {
  if (diagnosis.verdict && cannot_tell(diagnosis.findings[*diagnosis.verdict])) return kExitCannotTell;
  bool serious =
      std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                  [](const Finding& finding) { return finding.severity > analysis::Severity::kNote; });
  return serious ? kExitFindings : kExitOk;
}

RunOverview losses_of(const model::Job& job) {
  RunOverview run;
  for (const model::JobProcess& process : job.processes) {
    ProcessOverview& seen = run.processes.emplace_back();
    seen.host = job.text(process.row.host);
    seen.pid = process.row.pid;
    seen.rank = process.row.rank;
  }
  for (size_t i = 0; i < job.losses.size(); ++i) {
    model::Loss loss = job.losses.row(i);
    run.losses.push_back({.process = loss.process < job.processes.size() ? int64_t{loss.process} : -1,
                          .stage = std::string(job.text(loss.stage)),
                          .kind = std::string(job.text(loss.kind)),
                          .detail = std::string(job.text(loss.detail)),
                          .count = loss.count});
  }
  return run;
}

}  // namespace lockstep::cli::diagnose
