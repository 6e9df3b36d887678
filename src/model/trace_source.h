// SPDX-License-Identifier: Apache-2.0
// A run as a stream of traces, one process at a time, so that merging and exporting hold one process in
// memory. A run directory, a set of files and a trace.db are all sources.
//
// Threads: `load` may run on several threads at once for different processes, each into its own trace.
// Everything else belongs to one thread, and does not run beside a `load`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/process_part.h"
#include "model/trace.h"

namespace lockstep::model {

// What one counter of a host's links or GPUs was while a job ran. It belongs to a host and not to a process:
// other jobs of the host count as well.
struct HostCounter {
  struct Value {
    int64_t time_ns = 0;  // RunNs
    uint64_t value = 0;
    bool operator==(const Value&) const = default;
  };
  std::string host;
  std::string kind;    // port nic net pci gpu
  std::string device;  // "mlx5_0/1", "eth0", "0000:1b:00.0"
  std::string name;    // "link_downed", "sent"
  std::string unit;    // bytes count state MHz C mW bits Mb/s
  bool is_gauge = false;
  // Ascending in time, and only where it has changed. Of a gauge its value; else how much it has grown since
  // the first one: wraps and resets do not show.
  std::vector<Value> values;
  bool operator==(const HostCounter&) const = default;
};

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
  // Counters of the hosts' links and GPUs that were sampled beside the job; by host, kind, device and name.
  using HostCounterVisitor = std::function<void(const HostCounter&)>;
  virtual Result<void> host_counters(const HostCounterVisitor&) { return {}; }
  // What the run was opened from, for messages.
  virtual std::string name() const = 0;
};

}  // namespace lockstep::model
