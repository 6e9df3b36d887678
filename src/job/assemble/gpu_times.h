// SPDX-License-Identifier: Apache-2.0
// GPU begin and end of the operations of a trace, in host time, from KernelCh events: the first begin and
// last end over the channels, converted by one GpuClockFit per device. What cannot be converted stays unknown
// and is counted.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "job/assemble/gpu_clock_fit.h"
#include "job/assemble/launches.h"
#include "model/trace.h"

namespace lockstep::job::assemble {

class GpuTimes {
 public:
  // Reads channels and tasks of `trace` and adds to its losses. `trace` and `launches` outlive the object.
  GpuTimes(model::Trace& trace, const Launches& launches);

  // Host time, as RunNs. `error_ns` is the greater uncertainty of the two; -1: no times.
  struct Times {
    int64_t start_ns = 0, end_ns = 0;  // 0: unknown, or not ended
    int32_t error_ns = -1;
  };
  Times of_task(uint32_t task) const;

 private:
  // One channel's stamps, and their number in the fit of its device.
  struct Observed {
    uint32_t task;
    uint64_t device;
    size_t number;
    uint64_t start, stop;
  };
  // Raw stamps over the believable channels of a task.
  struct Work {
    uint64_t start = 0, stop = 0;
    uint32_t channels = 0;
    bool open = false;
  };
  void observe(const Launches& launches);
  void fit();
  uint64_t device_of(uint32_t task) const;

  model::Trace& trace_;
  std::vector<Observed> observed_;
  std::vector<Work> work_;             // by task row
  std::vector<uint64_t> comm_device_;  // by comm row
  std::unordered_map<uint64_t, GpuClockFit> fits_;
};

}  // namespace lockstep::job::assemble
