// SPDX-License-Identifier: Apache-2.0
// One process that cannot be read does not end an export: the others are written, and it becomes a loss of
// the run. Its error is the answer only if no process could be read. The next process is loaded on another
// thread while this one is written, so at most two are in memory.
#include "exporters/common/process_walk.h"

#include <filesystem>

#include "model/load_ahead.h"

namespace lockstep::exporters::common {

Result<void> walk_processes(model::TraceSource& source, const Progress& progress, model::Trace& run,
                            const std::function<bool(const model::Trace&)>& add) {
  const size_t count = source.processes();
  if (count == 0) return Error{ErrorCode::kNotFound, "holds no process to export", source.name()};
  size_t seen = 0;
  bool has_any = false;
  Result<void> first_failure;
  model::LoadAhead processes(source);
  while (auto current = processes.next()) {
    bool goes_on = true;
    if (current->result && current->trace->processes.size() > 0) {
      has_any = true;
      goes_on = add(*current->trace);
    } else {
      if (first_failure && !current->result) first_failure = current->result;
      run.lose(model::kNoRow, "export", "unreadable_process", 1,
               current->result ? "empty" : current->result.error().message());
    }
    if (!goes_on) break;
    if (progress) progress(static_cast<double>(++seen) / static_cast<double>(count));
  }
  if (!has_any && !first_failure) return first_failure.error();
  source.run_losses(run);
  return {};
}

Result<void> check_not_input(const model::TraceSource& source, const std::string& path) {
  std::error_code unknown;
  // Compares the files and not the names, so that links and other spellings are caught.
  if (std::filesystem::equivalent(path, source.name(), unknown))
    return usage_error("is the input; name another output", path);
  return {};
}

int64_t ViewerNumbers::of(const model::Trace& trace) {
  const int32_t rank = trace.processes.rank[0];
  if (rank >= 0 && taken_.insert(rank).second) return rank;
  // A job may have ranks as large as the free numbers, so a free number may be taken.
  while (!taken_.insert(next_).second) ++next_;
  return next_;
}

}  // namespace lockstep::exporters::common
