// SPDX-License-Identifier: Apache-2.0
// What one process of the job looks like as counters over time, from the intervals that its slices show. Made
// once for a trace, then only read; at most 64 bytes for each operation of the process.
//
//   operations in flight   collectives and transfers that have been called and are not known to be done: from
//                          the call (of a replay: from its enqueueing) to the end of the GPU work
//   bus bandwidth          the sum, over the operations that the GPU works on, of the bus bandwidth of each:
//                          its size by its whole time on the GPU (model/names/operation_size.h)
//
// A value holds until the next one; before the first nothing is said. An operation whose end nobody knows is
// in neither, unless it is open: the ends of all operations that its communicator had called before are
// known, and those of later ones are not. Open operations stay in flight. A process without a known end has
// no counters.
#pragma once
#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace lockstep::exporters::common {

struct CounterValue {
  int64_t time_ns = 0;
  int64_t value = 0;  // differs from the one before it
  bool operator==(const CounterValue&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const CounterValue& at) {
    return out << at.value << " at " << at.time_ns;
  }
};

struct Counter {
  std::string_view name, unit;
  bool in_thousandths = false;  // of the unit; else whole numbers
  std::vector<CounterValue> values;
};

class ProcessCounters {
 public:
  explicit ProcessCounters(const model::Trace& trace);
  // Those that have values.
  const std::vector<Counter>& counters() const { return counters_; }
  // Operations that are in no counter.
  void report_losses(model::Trace& run) const;

 private:
  struct Change {
    int64_t time_ns = 0, by = 0;
  };
  void find_open(const model::Trace& trace);
  void add_in_flight(const model::Trace& trace);
  void add_bus_bandwidth(const model::Trace& trace);
  void add(Counter counter, std::vector<Change> changes);

  std::vector<bool> open_;  // by operation
  std::vector<Counter> counters_;
  uint64_t without_end_ = 0, too_fast_ = 0;
};

}  // namespace lockstep::exporters::common
