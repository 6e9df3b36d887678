// SPDX-License-Identifier: Apache-2.0
#include "readers/common/demangle.h"

#include <gtest/gtest.h>

namespace lockstep::readers::common {
namespace {

TEST(Demangle, KernelsOfNcclAndPyTorch) {
  EXPECT_EQ(demangled("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"),
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(
      demangled(
          "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_"
          "T1_"),
      "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, "
      "1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)");
}

TEST(Demangle, ScopesAlone) {
  EXPECT_EQ(scoped_name("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"),
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  EXPECT_EQ(scoped_name("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_"),
            "at::native::vectorized_elementwise_kernel");
  EXPECT_EQ(scoped_name("_ZN2at6native"), "at::native");
  for (const char* name : {"", "_Z", "_ZN", "_Z9short", "_Z99999999999999999999999x", "_ZSt4pair", "gemm"})
    EXPECT_EQ(scoped_name(name), name);
}

TEST(Demangle, WhatIsNoSymbolOfCppStaysAsItIs) {
  for (const char* name :
       {"", "_Z", "sm80_xmma_gemm_f32f32", "_ZN2at6native", "Memcpy DtoH (Device -> Pinned)"})
    EXPECT_EQ(demangled(name), name);
}

// void f<int, int>(pair<T_, T_>, pair of two of those, ...): each argument is twice as long as the one
// before.
TEST(Demangle, SymbolsThatStandForNamesWithoutEndStayAsTheyAre) {
  std::string bomb = "_Z1f1aIiiE";
  for (int i = 0; i < 40; ++i) {
    std::string id =
        i < 36 ? std::string(1, i < 10 ? static_cast<char>('0' + i) : static_cast<char>('A' + i - 10))
               : "1" + std::to_string(i - 36);
    bomb += "S_IS" + id + "_S" + id + "_E";
  }
  EXPECT_EQ(demangled(bomb), bomb);
  const std::string small = bomb.substr(0, 10 + 9 * 10);
  EXPECT_LT(demangled(small).size(), 1'000'000u);
}

}  // namespace
}  // namespace lockstep::readers::common
