// SPDX-License-Identifier: Apache-2.0
// What a program declared through lockstep.h, as events of a trace that PyTorch's profiler wrote of the same
// process: the calls on the rows of their threads, their GPU work on rows of its own beside the device's
// streams, as streams are known to the two under different numbers.
#pragma once
#include <cstdint>

#include "exporters/chrome_json/json_writer.h"
#include "model/trace.h"

namespace lockstep::exporters::chrome_json {

struct TraceFrame {
  int64_t base_ns = 0;                // what its times count from
  int64_t pid = 0;                    // of its host rows
  int64_t first_ns = 0, last_ns = 0;  // what the profiler saw, absolute
  uint64_t largest_id = 0;            // of its events, of any kind: ours are above
};
struct DeclaredEvents {
  uint64_t operations = 0, kernels = 0;
  uint64_t outside = 0;  // operations that were called before or after what the profiler saw
  uint64_t events = 0;
};
// Appends them; `trace` is one process, and keeps nothing but what was declared.
DeclaredEvents write_declared(model::Trace& trace, const TraceFrame& frame, JsonWriter& json);

}  // namespace lockstep::exporters::chrome_json
