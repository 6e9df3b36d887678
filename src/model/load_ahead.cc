// SPDX-License-Identifier: Apache-2.0
// One process that cannot be read does not end a walk: its error is the answer only if no process could be
// read.
#include "model/load_ahead.h"

namespace lockstep::model {

Result<uint64_t> walk_processes(TraceSource& source, std::string_view stage,
                                const std::function<void(double)>& progress, Trace& run,
                                const std::function<Result<bool>(const Trace&)>& add) {
  const size_t count = source.processes();
  if (count == 0) return Error{ErrorCode::kNotFound, "holds no process", source.name()};
  uint64_t added = 0, seen = 0;
  Result<void> first_failure;
  LoadAhead processes(source);
  while (auto current = processes.next()) {
    Result<void> failure = current->result;
    if (failure && current->trace->processes.size() == 0)
      failure = Error{ErrorCode::kInvalidInput, "no process in it", source.name()};
    if (failure) {
      ++added;
      LOCKSTEP_ASSIGN(const bool goes_on, add(*current->trace));
      if (!goes_on) break;
    } else {
      if (first_failure) first_failure = failure;
      run.lose(kNoRow, stage, "unreadable_process", 1, failure.error().message());
    }
    if (progress) progress(static_cast<double>(++seen) / static_cast<double>(count));
  }
  if (added == 0) return first_failure.error();
  source.run_losses(run);
  return added;
}

}  // namespace lockstep::model
