// SPDX-License-Identifier: Apache-2.0
#include "cli/push/pushed_run.h"

#include <algorithm>
#include <filesystem>

#include "analysis/rollup/rollups.h"
#include "cli/kit/progress.h"
#include "cli/push/findings.h"

namespace lockstep::cli::push {
namespace {

// "runs/job-17/" -> "job-17"
// A path that ends in a slash has an empty last part.
std::string run_name(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  return name.filename();
}

}  // namespace

Result<PushedRun> pushed_run(const std::vector<std::string>& paths) {
  PushedRun pushed;
  {
    Progress progress("reading");
    LOCKSTEP_ASSIGN(pushed.diagnosed, verdict::diagnose(paths, progress.callback()));
  }
  const auto& all = pushed.diagnosed.evidence;
  // The first evidence with operations is the most trusted one; several are not added up.
  const auto evidence =
      std::find_if(all.begin(), all.end(), [](const auto& of) { return of.job.has_value(); });
  if (evidence == all.end())
    return Error{ErrorCode::kInvalidInput, "holds no operations; `push` takes what `summary` takes",
                 paths.front()};
  pushed.run = {.job = &*evidence->job,
                .name = run_name(paths.front()),
                .lockstep_version = LOCKSTEP_VERSION,
                .findings = fleet_findings(pushed.diagnosed, *evidence),
                .rollups = analysis::rollup::rollups(*evidence->job)};
  return pushed;
}

}  // namespace lockstep::cli::push
