// SPDX-License-Identifier: Apache-2.0
// What users name as input: a run directory, files of any format that a reader knows, or a trace.db. Run
// directories also name processes that left no file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "input/run_overview.h"
#include "readers/reader.h"

namespace lockstep::input {

struct Input {
  std::unique_ptr<ObservedSource> source;   // assembled
  std::string kind;                         // "run directory", "trace.db", "files"
  std::string evidence;                     // what it is of, as reports call it: "capture files"
  const readers::Format* format = nullptr;  // of its files, in a mix; none of a trace.db
  bool is_of_now = false;  // it shows what the job does now, and little of what it did before
  uint64_t files = 0, bytes = 0;
  std::vector<std::string> paths;      // what names it alone on a command line; empty: nothing does
  std::vector<std::string> databases;  // the trace.dbs of it
};
// One run: of one format, or of any number of trace.dbs and process files.
Result<Input> open_input(const std::vector<std::string>& paths);

// Any mix: each trace.db and each format that holds operations is a run, in the order in which they are
// trusted; files of other formats are left to who reads them.
struct MixedInput {
  std::vector<Input> runs;
  readers::Inputs files;           // runs do not need it
  std::vector<LossLine> troubles;  // what was named and cannot be read
};
Result<MixedInput> open_mixed_input(const std::vector<std::string>& paths);

}  // namespace lockstep::input
