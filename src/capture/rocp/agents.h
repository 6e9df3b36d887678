// SPDX-License-Identifier: Apache-2.0
// The GPUs that rocprofiler-sdk lists: all of the host, whatever an environment hides. Their kernels come
// with times of HSA's system clock, which stands for each GPU's own: one tick is 1 ns. Listed while the SDK
// initializes; then only read.
#pragma once
#include <cstdint>

#include "capture/rocp/sdk_abi.h"

namespace lockstep::capture::rocp {

inline constexpr uint32_t kMostAgents = 64;

// Lists and defines them. How many; 0 also where the SDK does not say.
uint32_t list_agents(QueryAgents query);
// kMostAgents: no GPU, or beyond the first kMostAgents.
uint32_t agent_number(uint64_t id);
// Defines where the clock is now beside the host's.
void place_clocks(GetTimestamp get_timestamp);
// capture/hsa/kernel_objects.h keeps its first numbers to itself; the SDK counts kernels from 1.
constexpr uint64_t key_of_kernel(uint64_t kernel) { return kernel + 16; }

}  // namespace lockstep::capture::rocp
