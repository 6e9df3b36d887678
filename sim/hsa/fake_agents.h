// SPDX-License-Identifier: Apache-2.0
// What host A says of its devices and clocks, for the tables.
#pragma once
#include "sim/hsa/fake_hsa.h"

namespace lockstep::sim {

void set_agents(const FakeHsaOptions& options);
hsa::Status system_get_info(uint32_t what, void* value);
hsa::Status iterate_agents(hsa::Status (*visit)(hsa::Agent, void*), void* data);
hsa::Status agent_get_info(hsa::Agent agent, uint32_t what, void* value);

uint64_t now_ns();     // HSA's system clock
uint64_t now_ticks();  // that of all GPUs

}  // namespace lockstep::sim
