// SPDX-License-Identifier: Apache-2.0
// The end of `lockstep trace`: what becomes of the run directory once the command has ended.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/push/follow.h"
#include "run/run_directory.h"

namespace lockstep::cli {

struct TraceRequest {
  std::string output, timeline;  // absolute; timeline may be empty
  std::string output_shown;      // as the user wrote it, for messages
  std::string run;               // absolute, the directory asked for
  bool run_is_named = false;     // by --dir: keep it
  bool merge = true, keep = false, json = false;
  bool require = false;  // no run without a trace
  std::string mode, retention;
  std::string sysfs_root;                 // that the links of this host are read from; empty: its own
  std::optional<push::FollowedJob> push;  // what is written to a store meanwhile, but for the run
  std::vector<std::string> argv;
};

// Merges unless another launcher will or the user does not want it; reports on stderr. `code` is the
// command's exit code, for the report. Raw files are removed only when all of them were read whole, merged
// and verified. Where the command has not started, and nothing was captured, nothing is said or left.
void end_trace(const TraceRequest& request, run::RunDirectory& run, int code, bool has_started);
// The report for programs where nothing was traced.
void report_untraced(const Error& why, int code);
// For a signal during the merge: removes what it has half written, and says how to merge later.
void report_stopped(const TraceRequest& request, const run::RunDirectory& run);

}  // namespace lockstep::cli
