// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/process_walk.h"

#include <filesystem>


namespace lockstep::exporters::common {

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
