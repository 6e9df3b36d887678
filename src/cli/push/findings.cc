// SPDX-License-Identifier: Apache-2.0
#include "cli/push/findings.h"

#include <algorithm>

namespace lockstep::cli::push {

std::vector<store::FleetFinding> fleet_findings(const verdict::DiagnosedRun& run,
                                                const verdict::Evidence& job) {
  std::vector<store::FleetFinding> findings;
  const auto jobs = std::count_if(run.evidence.begin(), run.evidence.end(),
                                  [](const verdict::Evidence& evidence) { return evidence.job.has_value(); });
  for (size_t i = 0; i < run.diagnosis.findings.size(); ++i) {
    const analysis::Finding& from = run.diagnosis.findings[i];
    store::FleetFinding& finding = findings.emplace_back();
    finding.id = analysis::id_text(from.id);
    finding.finding_class = analysis::class_text(analysis::class_of(from.id));
    finding.severity = analysis::severity_text(from.severity);
    finding.is_verdict = run.diagnosis.verdict == i;
    finding.statement = from.statement;
    finding.ranks = from.ranks;
    finding.hosts = from.hosts;
    // Of several jobs, nothing says whose row it is.
    if (jobs == 1 && from.comm_row && *from.comm_row < job.job->comms.size()) finding.comm = from.comm_row;
    finding.comm_name = from.comm;
    finding.func = from.func;
    finding.op_index = from.op_index;
    finding.comms_id = from.comms_id.value_or(0);
    finding.since_ns = from.since_ns.value_or(0);
    if (from.effect) {
      finding.effect = from.effect->value;
      finding.effect_low = from.effect->low;
      finding.effect_high = from.effect->high;
      finding.effect_unit = from.effect->unit;
    }
    finding.evidence = from.evidence;
    finding.advice = from.advice;
    finding.needed_evidence = from.needed_evidence;
  }
  return findings;
}

}  // namespace lockstep::cli::push
