// SPDX-License-Identifier: Apache-2.0
// What a file of the HSA library says of its process as a whole: GPUs and their clocks, queues, names of
// kernels, and counters. Read after the record census, as other definitions.
//
// An agent's raw ticks become host time piecewise, between the GpuClock definitions beside them. Each was
// made by the runtime, whose own conversion steps by up to a microsecond; how far a definition lies off the
// line of its neighbours is the error that is stated, and what reading the two clocks took.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/trace.h"
#include "readers/native/file/device_numbers.h"
#include "readers/native/file/file_view.h"
#include "readers/native/file/tick_clock.h"

namespace lockstep::readers::native {

// `gpu` of kernels of an agent, until all files of the process are read: agents are no ordinals of HIP's.
inline constexpr int32_t kFirstAgent = 1 << 16;

// One agent's clock against its host's. Points come in any order; finish() sorts them and drops those that go
// back. Then it is only read.
class AgentClock {
 public:
  // `system`: what the runtime made of `ticks`; both as ns of the host.
  void add(uint64_t ticks, int64_t host_ns, double width_ns);
  void finish(uint64_t tick_hz);
  bool known() const { return !points_.empty() && ns_per_tick_ > 0; }
  int64_t to_ns(uint64_t ticks) const;
  // Half-width in ns that to_ns() has, as measured: see above.
  double error_ns() const { return error_ns_; }

 private:
  struct Point {
    uint64_t ticks;
    int64_t ns;
    double width_ns;
  };
  std::vector<Point> points_;  // by ticks
  double ns_per_tick_ = 0, error_ns_ = 0;
};

// Empty for files of other libraries. Read once, then any number of threads may ask.
class GpuAgents {
 public:
  // A GPU as HSA lists it, by its number in the process. `tick_hz` 0 and `place` -1: unknown.
  struct Agent {
    std::string pci, uuid;
    uint64_t tick_hz = 0;
    int32_t place = -1;
    AgentClock clock;
  };
  // A kernel by its number; `defined` false: its name is not in the file. `has_plan`: RCCL's profiler reports
  // what it does.
  struct Symbol {
    model::StringId name = 0;
    bool communicates = false, has_plan = false, defined = false;
  };

  static GpuAgents read(const FileView& view, TickClock& clock, uint32_t process, model::Trace& trace,
                        ReadLosses& losses);

  const std::vector<Agent>& agents() const { return agents_; }
  Symbol symbol(uint32_t number) const { return number < symbols_.size() ? symbols_[number] : Symbol{}; }
  // Host time of an agent's ticks; 0: its clock is not known.
  int64_t ticks_to_ns(uint16_t agent, uint64_t ticks) const;
  // The same of HSA's system clock.
  int64_t system_to_ns(uint64_t system) const;

 private:
  class Reader;
  std::vector<Agent> agents_;
  std::vector<Symbol> symbols_;
  uint64_t system_at_ = 0;  // HSA's clock at the host time system_at_ns_
  int64_t system_at_ns_ = 0;
  double ns_per_system_ = 1;
};

// How an agent names its device: by its PCI address, as HIP does; where a GPU is several agents, also by
// UUID.
DeviceIdentity identity_of(std::span<const GpuAgents::Agent> agents, size_t number);
// Only the agents of a file, for numbering devices before it is read.
std::vector<GpuAgents::Agent> read_agents(const FileView& view, ReadLosses& losses);

}  // namespace lockstep::readers::native
