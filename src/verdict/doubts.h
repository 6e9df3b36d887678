// SPDX-License-Identifier: Apache-2.0
// What keeps an input as a whole from answering for a job: files of several jobs, files that could not be
// read, too little to call a job healthy. Each is a finding, so that every output says it and the exit code
// follows.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "verdict/coverage.h"

namespace lockstep::verdict {

// Who a process is, and through which of the named inputs it was seen.
struct Sighting {
  std::string input;  // as the user named it: a directory, or where a file lies
  int32_t rank = -1;
  std::string boot_id;  // hex
  int64_t pid = 0;
  std::string file = {};  // its name, where it is one of the process; a copy has it too
  bool operator==(const Sighting&) const = default;
};
// Of the process files and directories among `paths`, by their headers; each file once, however it is named.
std::vector<Sighting> sightings(const std::vector<std::string>& paths);

// Job ids that differ; a rank that two of the inputs hold, or that one holds twice at one time. Said before
// all else.
std::optional<analysis::Finding> several_jobs(const DiagnosedRun& run, std::vector<Sighting> sightings);
// Whether a log's finding of a communicator that is not complete is of a live run that may be completing it:
// its ranks called something, or started, a moment ago.
bool is_in_progress(const analysis::Finding& finding, const DiagnosedRun& run);
std::optional<analysis::Finding> unread_inputs(const DiagnosedRun& run);

// "No problem found" needs operations, half of them seen on all their ranks; "no problem so far" does not.
// Logs say what went wrong, never that nothing did.
std::optional<analysis::Finding> too_little(const DiagnosedRun& run);
bool is_enough(const Coverage& coverage);

}  // namespace lockstep::verdict
