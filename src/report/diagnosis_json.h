// SPDX-License-Identifier: Apache-2.0
// A diagnosis for programs. The words and keys are those of docs/diagnose.md; times are ns since the Unix
// epoch.
#pragma once
#include "base/text/json_text.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::report {

Json diagnosis_json(const verdict::DiagnosedRun& run);
Json finding_json(const analysis::Finding& finding);

}  // namespace lockstep::report
