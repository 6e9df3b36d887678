// SPDX-License-Identifier: Apache-2.0
// The sentences that `merge` and `trace` share. Losses come first, so that nobody takes what is left for
// everything.
#include "cli/merge/merge_report.h"
#include "input/run_json.h"

#include <algorithm>

#include "base/text/units.h"
#include "input/losses.h"
#include "run/run_directory.h"
#include "verdict/next_steps.h"

namespace lockstep::cli {

std::vector<std::string> merge_sentences(const input::RunOverview& run, const store::MergeResult& merged,
                                         const std::string& output, uint64_t files) {
  std::vector<std::string> lines = input::loss_sentences(run);
  lines.push_back(plural(files, "file") + " of " + input::processes_text(run) + ": " +
                  plural(run.ops, "operation") + " on " + plural(run.comms.size(), "communicator"));
  lines.push_back("wrote " + output + " (" + plural(merged.rows, "row") + ", " + format_bytes(merged.bytes) +
                  ")");
  // Link logs are our own, so they are not counted among the files of other tools.
  const auto others =
      static_cast<uint64_t>(std::count_if(merged.attached.begin(), merged.attached.end(),
                                          [](const std::string& file) { return !run::is_link_log(file); }));
  if (others > 0)
    lines.push_back("copied " + plural(others, "file") + " of other tools; `lockstep diagnose` reads them");
  // A name that no shell takes safely gets no command to copy.
  if (const auto word = verdict::shell_word(output))
    lines.push_back("next: lockstep diagnose " + *word + "; lockstep report " + *word);
  return lines;
}

Json merge_json(const input::RunOverview& run, const store::MergeResult& merged, const std::string& output,
                uint64_t files) {
  return {{"schema", "lockstep.merge.v1"},
          {"output", output},
          {"files", files},
          {"processes", run.processes.size()},
          {"hosts", run.hosts},
          {"ops", run.ops},
          {"comms", run.comms.size()},
          {"rows", merged.rows},
          {"bytes", merged.bytes},
          {"attached", merged.attached.size()},
          {"salvaged", run.salvaged()},
          {"losses", input::losses_json(run)}};
}

}  // namespace lockstep::cli
