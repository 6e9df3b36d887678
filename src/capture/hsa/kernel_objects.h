// SPDX-License-Identifier: Apache-2.0
// From the address in a packet to the kernel's name. Names are read where an executable is frozen, on its
// caller's thread, once each; a dispatch looks its number up without a lock; the name of a number that was
// dispatched is defined in the file by our thread. Numbers are never given again; an executable that is
// destroyed takes its addresses along. Bounded: kMostKernels, kMostNameBytes; kernels beyond have no name
// (counted at their dispatch).
#pragma once
#include "capture/hsa/rccl_names.h"
#include "capture/hsa/runtime.h"

namespace lockstep::capture::hsa {

inline constexpr uint32_t kMostKernels = 1 << 20;
inline constexpr size_t kMostNameBytes = size_t{256} << 20;

struct KernelObject {
  uint32_t number = 0;  // 0: unknown
  Rccl rccl = Rccl::kNone;
};
// Any thread, no lock. `use` also has the name defined.
KernelObject find_kernel(uint64_t kernel_object);
void use_kernel(uint32_t number);

// A kernel by whatever names it in a dispatch, which is more than 1. Under a lock; the name is copied.
void add_kernel(uint64_t object, const char* name);
void count_executable();
// Reads the names of its kernels, under a lock, on the thread that freezes it.
void add_executable(const Runtime& runtime, Executable executable);
// Before it is destroyed.
void forget_executable(const Runtime& runtime, Executable executable);
// Defines names of numbers that were used since the last time. One thread.
void define_used_kernels();
// Added so far, forgotten ones included.
uint64_t executables();

}  // namespace lockstep::capture::hsa
