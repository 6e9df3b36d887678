// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/process_walk.h"

#include <filesystem>

namespace lockstep::exporters::common {

// Their pids stay below 2^31, as Perfetto's are.
constexpr int64_t kNumbers = INT32_MAX / kPidStride;

Result<void> check_not_input(const model::TraceSource& source, const std::string& path) {
  std::error_code unknown;
  // Compares the files and not the names, so that links and other spellings are caught.
  if (std::filesystem::equivalent(path, source.name(), unknown))
    return usage_error("is the input; name another output", path);
  return {};
}

int64_t ViewerNumbers::of(const model::Trace& trace) {
  const int32_t rank = trace.processes.rank[0];
  if (rank >= 0 && rank < kNumbers && taken_.insert(rank).second) return rank;
  return next();
}

ViewerProcess ViewerNumbers::of_host(const std::string& name) {
  const int64_t pid = next() * kPidStride + kHostPid;
  return {.pid = pid, .name = name, .label = "host", .sort_index = pid};
}

int64_t ViewerNumbers::next() {
  // More processes than numbers: their pids are too large for some viewers, and still differ.
  if (static_cast<int64_t>(taken_.size()) >= kNumbers) next_ = static_cast<int64_t>(taken_.size());
  // A job may have ranks as large as the free numbers, so a free number may be taken.
  while (!taken_.insert(next_).second) next_ = (next_ + 1) % kNumbers;
  return next_;
}

}  // namespace lockstep::exporters::common
