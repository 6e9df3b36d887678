// SPDX-License-Identifier: Apache-2.0
// The GPUs that HSA lists, in its order. Filled by OnLoad; the clocks are the collector's.
#pragma once
#include <atomic>

#include "capture/hsa/runtime.h"

namespace lockstep::capture::hsa {

inline constexpr uint32_t kMostAgents = 64;

// Written by OnLoad and the collector; `last_stop` by whoever collects, on any thread.
struct GpuAgent {
  Agent agent;
  uint64_t tick_hz;                 // 0 unknown
  std::atomic<uint64_t> last_stop;  // ticks: of the kernel that was seen to end last
  uint64_t placed_ticks;            // for which a GpuClock was defined last
};

// Lists and defines them. How many.
uint32_t list_agents(const Runtime& runtime);
uint32_t agent_count();
GpuAgent& gpu_agent(uint32_t number);
// kMostAgents: no GPU, or beyond the first kMostAgents.
uint32_t agent_number(Agent agent);
// Defines where the clock of an agent is now, if a kernel has ended there since the last time.
void place_clock(const Runtime& runtime, uint32_t number);

}  // namespace lockstep::capture::hsa
