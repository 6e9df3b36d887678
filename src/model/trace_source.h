// SPDX-License-Identifier: Apache-2.0
// A run as a stream of traces, one process at a time, so that merging and exporting hold one process in
// memory. A run directory, a set of files and a trace.db are all sources.
//
// Threads: `load` may run on several threads at once for different processes, each into its own trace.
// Everything else belongs to one thread, and does not run beside a `load`.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "model/process_part.h"
#include "model/trace.h"

namespace lockstep::model {

class TraceSource {
 public:
  virtual ~TraceSource() = default;
  // Number of processes that `load` accepts; fixed once open.
  virtual size_t processes() const = 0;
  // Fills an empty trace with process `i` (row 0 of `processes`), assembled: ops included. Row numbers are
  // local to the trace. Damage is a loss row, not an error; an error means that nothing of this process could
  // be read.
  virtual Result<void> load(size_t i, Trace& trace) = 0;
  // What keeps no traces gives what would be made of them: then `load_part` is asked instead, by the same
  // rules. The part is consistent, whatever it was read from.
  virtual bool gives_parts() const { return false; }
  virtual Result<void> load_part(size_t, ProcessPart&) {
    return Error{ErrorCode::kUnsupported, "gives traces", {}};
  }
  // Losses of the run itself (a file that is no trace, a process without a file): rows with process kNoRow.
  virtual void run_losses(Trace& trace) = 0;
  // What the run was opened from, for messages.
  virtual std::string name() const = 0;
};

}  // namespace lockstep::model
