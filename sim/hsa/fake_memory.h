// SPDX-License-Identifier: Apache-2.0
// Memory of host A: the functions of its tables. Each GPU has a pool that the host can read and one that it
// cannot.
#pragma once
#include "capture/hsa/hsa_abi.h"

namespace lockstep::sim {

capture::hsa::Status iterate_pools(capture::hsa::Agent agent,
                                   capture::hsa::Status (*visit)(capture::hsa::Pool, void*), void* data);
capture::hsa::Status pool_allocate(capture::hsa::Pool pool, size_t bytes, uint32_t flags, void** memory);
capture::hsa::Status memory_free(void* memory);

}  // namespace lockstep::sim
