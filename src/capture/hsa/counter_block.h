// SPDX-License-Identifier: Apache-2.0
// LOCKSTEP_HSA=print: counters on stderr, in the block that users of rocm-trace-lite know. Once a process, at
// its end.
#pragma once
#include <cstdint>

namespace lockstep::capture::hsa {

// By the numbers of format/hsa_counters.def.
void print_counters(const uint64_t* counts);

}  // namespace lockstep::capture::hsa
