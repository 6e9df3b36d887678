// SPDX-License-Identifier: Apache-2.0
// A GPU is known over processes by its place among all GPUs of the host: what a process sees of them depends
// on its environment.
#pragma once
#include "format/definitions.h"

namespace lockstep::capture::hsa {

// The address as text, and the place: how many GPUs of the host have a smaller one, by the driver's topology;
// -1 unknown. Of `bdf`, 8 bits are the bus, 5 the device and 3 the function.
void set_address(format::GpuAgentDef* def, uint32_t domain, uint32_t bdf);

}  // namespace lockstep::capture::hsa
