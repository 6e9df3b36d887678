// SPDX-License-Identifier: Apache-2.0
// Kernels of RCCL by their symbols, of all its generations: which are recorded in lite mode, and whose first
// argument is the communicator on the device.
#pragma once
#include <cstdint>
#include <initializer_list>

namespace lockstep::capture::hsa {

enum class Rccl : uint8_t { kNone = 0, kKernel = 1, kWithComm = 2 };

// `symbol`: mangled or not.
constexpr Rccl rccl_kind(const char* symbol) {
  const auto starts = [](const char* text, const char* with) {
    while (*with != 0 && *text == *with) ++text, ++with;
    return *with == 0;
  };
  const char* name = symbol;
  if (starts(name, "_Z")) {
    name += 2;
    while (*name >= '0' && *name <= '9') ++name;
  }
  for (const char* with_comm :
       {"ncclDevKernel", "ncclKernel", "rccl_main_kernel", "rcclGenericKernel", "mscclKernel"}) {
    if (starts(name, with_comm)) return Rccl::kWithComm;
  }
  return starts(name, "oneRankReduce") ? Rccl::kKernel : Rccl::kNone;
}
static_assert(rccl_kind("_Z17rcclGenericKernelILi1ELb0EEv20ncclDevKernelArgsStorage") == Rccl::kWithComm);
static_assert(rccl_kind("rccl_main_kernel_debug") == Rccl::kWithComm);
static_assert(rccl_kind("_Z13oneRankReduceI7FuncSumIfEEvPvS2_m") == Rccl::kKernel);
static_assert(rccl_kind("Cijk_Ailk_Bljk_HHS_BH_MT128") == Rccl::kNone && rccl_kind("_Z") == Rccl::kNone);

}  // namespace lockstep::capture::hsa
