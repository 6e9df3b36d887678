// SPDX-License-Identifier: Apache-2.0
// Where kernels' arguments may be read. A packet holds an address and nothing says what lies there, so an
// argument is read only inside memory that the program got from the runtime, and has not given back, and
// that the host can read: the host's own. Memory of a GPU only by choice (LOCKSTEP_HSA=devargs), as reading
// it takes the host long, and only if /proc/self/maps says that it is readable.
//
// Threads: allocations by any; can_read() by launching threads, without a lock. Bounded: kMostAreas; what is
// allocated beyond is not read.
#pragma once
#include "capture/hsa/runtime.h"

namespace lockstep::capture::hsa {

inline constexpr uint32_t kMostAreas = 1024;

// Lists the pools. False: the runtime has no such functions, or no pool of the host's.
bool begin_argument_memory(const Runtime& runtime, bool with_gpus);
Status on_pool_allocate(Pool pool, size_t bytes, uint32_t flags, void** memory);
// Both free what on_pool_allocate() gave.
Status on_pool_free(void* memory);
Status on_memory_free(void* memory);
// Whether `bytes` from there on are in known memory. `hint`: the caller's, 0 at first.
bool can_read(uint64_t address, size_t bytes, uint32_t* hint);

}  // namespace lockstep::capture::hsa
