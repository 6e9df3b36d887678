// SPDX-License-Identifier: Apache-2.0
// Two runs as users name them, read one after the other: only sums by step of the first are kept while the
// second is read.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "analysis/compare/comparison.h"
#include "base/result.h"
#include "input/run_overview.h"

namespace lockstep::cli::compare {

struct ComparedRun {
  std::string path;
  std::string evidence;         // what was compared of it: "capture files"
  input::RunOverview overview;  // its processes and losses
  uint64_t lost = 0;            // events, or pieces of files
  analysis::compare::Samples::Steps steps_by = analysis::compare::Samples::Steps::kNone;
};

struct ComparedRuns {
  ComparedRun a, b;  // the one to compare with, and the one in question
  analysis::compare::Comparison comparison;
};

// Of a mix of evidence, the most trusted that holds operations counts.
Result<ComparedRuns> compare_runs(const std::string& a, const std::string& b,
                                  const std::function<void(double)>& progress);

// What the whole comes to.
struct Verdict {
  enum class State : uint8_t { kSame, kFaster, kSlower, kCannotTell } state = State::kCannotTell;
  std::string headline;     // sentences
  size_t cause = SIZE_MAX;  // of the comparison's rows: what costs most; SIZE_MAX none
};
Verdict verdict(const ComparedRuns& runs);
std::string_view state_text(Verdict::State state);  // "same", "faster", "slower", "cannot tell"

// Whether the row says what another one says: of a sum over one class alone.
bool repeats(const analysis::compare::Row& row);
// "AllReduce 64 MiB+ in dp", "rank 5", "all ranks", ...
std::string row_text(const analysis::compare::Row& row);
std::string since_text(const analysis::compare::Since& since);  // "step 210", "the start"

}  // namespace lockstep::cli::compare
