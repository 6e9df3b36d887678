// SPDX-License-Identifier: Apache-2.0
// Kernels of several processes that wait for each other, as those of a collective do. Of the software device,
// whose kernels run nothing: LOCKSTEP_SIM_MEETING names a file that the processes share, and
// LOCKSTEP_SIM_RANKS how many they are.
#pragma once
#include <atomic>
#include <cstdint>

namespace lockstep::sim {

// A kernel takes part whose first argument is a communicator's address: one of these.
constexpr uint64_t communicator_of(uint64_t rank) { return 0xc0c00000 + 0x100 * rank; }

// Returns when all have begun their n-th such kernel, or the queue is ending; at once for others.
// `arguments`: address of the kernel's.
void meet(uint64_t arguments, const std::atomic<bool>& is_ending);

}  // namespace lockstep::sim
