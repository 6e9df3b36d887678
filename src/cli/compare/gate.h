// SPDX-License-Identifier: Apache-2.0
// What a run must keep against another one, as people write it:
//
//   gates   gate { "," gate }
//   gate    metric [ ":" function [ ":" size ] ] ( ">=" | "<=" ) ratio
//   metric  "step" | "busbw" | "duration" | "lateness" | "exposed"
//
// Blanks around the parts do not matter. Only busbw and duration have functions. A size ("64M") stands for
// all sizes from the power of two below it to the next.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.h"
#include "base/result.h"

namespace lockstep::cli::compare {

struct Gate {
  analysis::compare::Metric metric = analysis::compare::Metric::kStep;
  analysis::compare::Level level = analysis::compare::Level::kJob;  // kJob, kFunc or kSize
  std::string func;
  uint64_t size = 0;
  bool at_least = false;  // else at most
  double bound = 1;
  std::string text;  // as written, without blanks
};
// An error names the character at which the text is wrong. At least one gate.
Result<std::vector<Gate>> parse_gates(std::string_view text);

struct GateResult {
  enum class State : uint8_t { kPass, kRegressed, kCannotTell } state = State::kCannotTell;
  std::optional<analysis::compare::Ratio> ratio{};  // that was judged; nothing: there is none
  std::string sentence{};
};
// Passed if the whole interval of 95 % is on the good side of the bound, regressed if the whole of it is on
// the other. What got worse inside the run and stays so to its end is judged by the steps since then.
GateResult judge(const Gate& gate, const analysis::compare::Comparison& comparison);

// Of several: regressed if one is, else undecided if one is.
GateResult::State worst(const std::vector<GateResult>& results);
std::string_view state_text(GateResult::State state);  // "pass", "regressed", "cannot tell"

}  // namespace lockstep::cli::compare
