// SPDX-License-Identifier: Apache-2.0
// What a diagnosis comes to: the exit code and the first word of its report, by one rule. docs/diagnose.md
// has the table.
#pragma once
#include <string>
#include <string_view>

#include "analysis/analysis.h"

namespace lockstep::verdict {

enum class Outcome : uint8_t {
  kHealthy,
  kProblem,     // the verdict says what is wrong
  kCannotTell,  // the verdict says what is missing
};
Outcome outcome(const analysis::Diagnosis& diagnosis);
int exit_code(const analysis::Diagnosis& diagnosis);  // 0, 1, 3
bool cannot_tell(const analysis::Finding& finding);

// What it says apart from numbers that move while a job stands still: `--watch` prints a report when this
// changes.
std::string essence(const analysis::Diagnosis& diagnosis);

// "CRITICAL", "WARNING", "CANNOT TELL", "note"
std::string_view word(const analysis::Finding& finding);
// Of a healthy job. `asked_all`: else only who is stuck was asked.
std::string_view healthy_words(bool still_runs, bool asked_all = true);
// "12.0 ms (11.8 ms to 12.2 ms)"
std::string effect_text(const analysis::Effect& effect);

}  // namespace lockstep::verdict
