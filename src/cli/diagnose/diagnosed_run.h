// SPDX-License-Identifier: Apache-2.0
// A run with everything that a report about it says, and what follows for the exit code.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/match/match.h"
#include "base/result.h"
#include "cli/run_overview.h"
#include "model/job.h"

namespace lockstep::cli::diagnose {

struct DiagnosedRun {
  std::string name;  // of the input
  model::Job job;
  analysis::Diagnosis diagnosis;
  std::vector<analysis::match::CommMatch> matches;  // by row of the job's comms

  const analysis::Finding* verdict() const {
    return diagnosis.verdict ? &diagnosis.findings[*diagnosis.verdict] : nullptr;
  }
};

// Reads what users name as input, looks whether its processes still run, and asks every analysis.
Result<DiagnosedRun> diagnose(const std::vector<std::string>& paths,
                              const std::function<void(double)>& progress);

// 0 healthy; 1 a finding that is more than a note; 3 the verdict is that it cannot be told.
int exit_code(const analysis::Diagnosis& diagnosis);
bool cannot_tell(const analysis::Finding& finding);

// The job's losses as reports show them.
RunOverview losses_of(const model::Job& job);

}  // namespace lockstep::cli::diagnose
