// SPDX-License-Identifier: Apache-2.0
// An analysis answers one question about a job with findings. A new one is a folder and a line in
// analyses.def.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "analysis/finding.h"
#include "model/job.h"

namespace lockstep::analysis {

struct Analysis {
  std::string_view name;      // its folder
  std::string_view question;  // "Which rank is late, and since when?"
  // The job is matched and its clocks are aligned. Never prints; one thread. Adds to `findings` and is
  // independent of other analyses, but for completeness, which also drops what others found in damaged
  // records.
  void (*run)(const model::Job& job, std::vector<Finding>& findings);
  bool is_of_now = false;  // what the job does now answers it, without all that it did before
};

// All analyses, in the order of analyses.def.
// Static storage.
std::span<const Analysis* const> all();

// The answer of all analyses together.
struct Diagnosis {
  std::vector<Finding> findings;  // the most important first
  // The finding that answers "what is wrong": a position in `findings`; nothing for a healthy run.
  std::optional<size_t> verdict;
};

// Matches, aligns the clocks, runs every analysis, or those of now alone, and puts their findings in order.
Diagnosis diagnose(model::Job& job, bool of_now = false);

// The most important first, and which of them is the verdict.
Diagnosis in_order(std::vector<Finding> findings);

}  // namespace lockstep::analysis
