// SPDX-License-Identifier: Apache-2.0
// Declared operations put into a trace of PyTorch's profiler: the file as it is, with their events behind its
// own.
#pragma once
#include <string>

#include "base/result.h"
#include "exporters/chrome_json/declared_events.h"
#include "model/trace_source.h"

namespace lockstep::cli::convert {

struct Inserted {
  int32_t rank = -1;
  exporters::chrome_json::DeclaredEvents what;
  uint64_t bytes = 0;
};
// `profile` is a plain file. Its rank has to be one of the run's; an error too where it is damaged, or has no
// event.
Result<Inserted> write_into(const std::string& profile, model::TraceSource& run, const std::string& output);

}  // namespace lockstep::cli::convert
