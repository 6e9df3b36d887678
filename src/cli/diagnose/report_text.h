// SPDX-License-Identifier: Apache-2.0
// A diagnosis for people: the verdict first, then why, what to do, what else was found, and what could not be seen.
#pragma once
#include <string>

#include "cli/diagnose/diagnosed_run.h"
#include "cli/style.h"

namespace lockstep::cli::diagnose {

// "12.0 ms (11.8 ms to 12.2 ms)"
std::string effect_text(const analysis::Effect& effect);
std::string report_text(const DiagnosedRun& run, const Style& style, bool verbose);

}  // namespace lockstep::cli::diagnose
