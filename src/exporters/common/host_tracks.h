// SPDX-License-Identifier: Apache-2.0
// Counters of hosts as timelines draw them: bytes as a rate, errors as what has been counted since the job
// began, states and clocks as they are. What never changed is left out, except a GPU's clock, heat and power.
#pragma once
#include <string>
#include <vector>

#include "exporters/common/process_counters.h"
#include "model/trace_source.h"

namespace lockstep::exporters::common {

// `counter.name` and `.unit` point into the others, so it is never copied.
struct HostTrack {
  explicit HostTrack(const model::HostCounter& from);
  HostTrack(const HostTrack&) = delete;
  HostTrack& operator=(const HostTrack&) = delete;

  std::string host;  // "node3: links and GPUs"
  std::string name;  // "mlx5_0/1 sent"
  std::string unit;
  Counter counter;  // without values: nothing to draw
};

// Bytes per second, in thousandths of a GB/s. Counters are read now and then, and only changes are known: a
// rate is the mean since the reading before, which was a usual distance away. Where the counter stood still
// for longer it is 0.
std::vector<CounterValue> rate_of(const model::HostCounter& counter);

}  // namespace lockstep::exporters::common
