// SPDX-License-Identifier: Apache-2.0
// What every exporter does around its own format: one process of the run after the other, and the losses on
// the way. One thread, beside which the next process is loaded.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "exporters/exporter.h"
#include "model/trace.h"
#include "model/trace_source.h"

namespace lockstep::exporters::common {

// Calls `add` with each process that can be read, until it returns false. What cannot be read is a loss in
// `run`, to which those of the run itself are added at the end. An error if nothing could be read.
Result<void> walk_processes(model::TraceSource& source, const Progress& progress, model::Trace& run,
                            const std::function<bool(const model::Trace&)>& add);

// An error if `path` is what the run is read from.
Result<void> check_not_input(const model::TraceSource& source, const std::string& path);

// The number by which a viewer knows a process: its rank, or one that no rank has where ranks are unknown or
// repeated.
class ViewerNumbers {
 public:
  // Never the same for two traces. A trace that is asked for twice gets two numbers.
  int64_t of(const model::Trace& trace);

 private:
  std::set<int64_t> taken_;
  int64_t next_ = 20000;  // times kPidStride it stays below 2^31
};

}  // namespace lockstep::exporters::common
