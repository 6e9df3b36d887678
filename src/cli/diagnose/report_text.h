// SPDX-License-Identifier: Apache-2.0
// A diagnosis for people: the verdict first, then why, what to do, what else was found, and what could not be
// seen.
#pragma once
#include <string>

#include "base/text/style.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::cli::diagnose {

std::string report_text(const verdict::DiagnosedRun& run, const Style& style, bool verbose);

}  // namespace lockstep::cli::diagnose
