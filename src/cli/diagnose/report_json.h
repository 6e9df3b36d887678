// SPDX-License-Identifier: Apache-2.0
// A diagnosis for programs. The words and keys are those of docs/diagnose.md; times are ns since the Unix epoch.
#pragma once
#include "cli/diagnose/diagnosed_run.h"
#include "cli/json_text.h"

namespace lockstep::cli::diagnose {

Json report_json(const DiagnosedRun& run);
Json finding_json(const analysis::Finding& finding);

}  // namespace lockstep::cli::diagnose
