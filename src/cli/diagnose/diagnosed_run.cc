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

namespace {

std::map<int32_t, std::string> hosts_of(const model::Job& job) {
  std::map<int32_t, std::string> hosts;
  for (const model::JobProcess& process : job.processes) {
    if (process.row.rank >= 0) hosts.emplace(process.row.rank, job.text(process.row.host));
  }
  return hosts;
}

}  // namespace

Result<DiagnosedRun> diagnose(const std::vector<std::string>& paths,
                              const std::function<void(double)>& progress) {
  LOCKSTEP_ASSIGN(MixedInput input, open_mixed_input(paths));
  DiagnosedRun run;
  run.troubles = std::move(input.troubles);
  std::vector<std::vector<Finding>> findings;
  for (size_t i = 0; i < input.runs.size(); ++i) {
    Input& from = input.runs[i];
    run.name += (run.name.empty() ? "" : ", ") + from.source->name();
    Evidence evidence;
    evidence.source = from.evidence;
    const auto part = [&](double done) {
      progress((static_cast<double>(i) + done) / static_cast<double>(input.runs.size()));
    };
    LOCKSTEP_ASSIGN(evidence.job, analysis::gather::gather(*from.source, {.threads = 0, .progress = part}));
    set_liveness(paths, *evidence.job);
    findings.push_back(analysis::diagnose(*evidence.job).findings);
    evidence.matches = analysis::match::count_matches(*evidence.job);
    evidence.hosts = hosts_of(*evidence.job);
    run.evidence.push_back(std::move(evidence));
  }
  for (const readers::FormatFiles& files : input.files.formats) {
    LOCKSTEP_ASSIGN(auto statement, judge_statements(input.files, files));
    if (!statement) continue;
    run.name += (run.name.empty() ? "" : ", ") + statement->evidence.content;
    run.evidence.push_back(std::move(statement->evidence));
    findings.push_back(std::move(statement->findings));
  }
  std::vector<analysis::join::Testimony> testimonies;
  for (size_t i = 0; i < run.evidence.size(); ++i) {
    const Evidence& evidence = run.evidence[i];
    testimonies.push_back(
        {evidence.source, evidence.job ? &*evidence.job : nullptr, evidence.hosts, std::move(findings[i])});
  }
  auto joined = analysis::join::join(std::move(testimonies));
  run.diagnosis = std::move(joined.diagnosis);
  run.links = std::move(joined.links);
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

RunOverview losses_of(const Evidence& evidence) {
  RunOverview run;
  if (!evidence.job) return run;
  const model::Job& job = *evidence.job;
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
