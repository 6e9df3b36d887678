// SPDX-License-Identifier: Apache-2.0
// What users name as input: a run directory, files of any format that a reader knows, or a trace.db. Run directories
// also tell of processes that left no file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/run_overview.h"

namespace lockstep::cli {

struct Input {
  std::unique_ptr<ObservedSource> source;  // assembled
  std::string kind;                        // "run directory", "trace.db", "files"
  uint64_t files = 0, bytes = 0;
};
Result<Input> open_input(const std::vector<std::string>& paths);

// Loads every process once and forgets it, for what the source observes. Shows progress.
void read_all(ObservedSource& source);

}  // namespace lockstep::cli
