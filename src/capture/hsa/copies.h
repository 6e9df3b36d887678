// SPDX-License-Identifier: Apache-2.0
// Copies that the runtime is asked for (LOCKSTEP_HSA=copies). An engine that copies takes no barrier packet,
// so the copy gets a signal of ours, and the runtime's own thread passes its end on to the program's: as
// rocprofiler-sdk does it, a program then learns of the end of a copy some microseconds later. Copies made by
// kernels are kernels. Bounded: kMostCopies at a time; others are left alone.
#pragma once
#include "capture/hsa/runtime.h"

namespace lockstep::capture::hsa {

inline constexpr uint32_t kMostCopies = 256;

// Makes the signals. False: the runtime gives none, or cannot time copies; all copies are then left alone.
bool begin_copies();
// Gives back the signals of copies that have ended.
void end_copies();
Status on_memory_async_copy(void* to, Agent to_agent, const void* from, Agent from_agent, size_t bytes,
                            uint32_t count, const Signal* dependencies, Signal completion);
Status on_copy_on_engine(void* to, Agent to_agent, const void* from, Agent from_agent, size_t bytes,
                         uint32_t count, const Signal* dependencies, Signal completion, uint32_t engine,
                         bool force);

}  // namespace lockstep::capture::hsa
