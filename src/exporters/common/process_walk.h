// SPDX-License-Identifier: Apache-2.0
// What every exporter of timelines does around its own format.
#pragma once
#include <cstdint>
#include <set>
#include <string>

#include "exporters/common/process_slices.h"
#include "exporters/exporter.h"
#include "model/trace.h"
#include "model/trace_source.h"

namespace lockstep::exporters::common {

// An error if `path` is what the run is read from.
Result<void> check_not_input(const model::TraceSource& source, const std::string& path);

// The number by which a viewer knows a process: its rank, or one that no rank has where ranks are unknown,
// repeated or too large.
class ViewerNumbers {
 public:
  // Never the same for two traces. A trace that is asked for twice gets two numbers.
  int64_t of(const model::Trace& trace);
  // What belongs to a host, and to none of its processes: behind all of them.
  ViewerProcess of_host(const std::string& name);

 private:
  int64_t next();

  std::set<int64_t> taken_;
  int64_t next_ = 20000;  // of those that few jobs have as ranks
};

}  // namespace lockstep::exporters::common
