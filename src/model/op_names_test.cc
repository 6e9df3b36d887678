// SPDX-License-Identifier: Apache-2.0
#include "model/op_names.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(OpNames, KernelAndCallNames) {
  Trace trace;
  auto text = [&](std::string_view t) { return trace.strings.intern(t); };
  uint32_t full = trace.intern_shape({text("AllReduce"), text("ncclFloat32"), text("RING"), text("LL"), 0});
  uint32_t bare = trace.intern_shape({text("one_shot"), text("float"), 0, 0, 0});
  EXPECT_EQ(kernel_name(trace, full, false), "ncclKernel_AllReduce_RING_LL_ncclFloat32");
  EXPECT_EQ(api_name(trace, full, false), "ncclAllReduce");
  EXPECT_EQ(kernel_name(trace, bare, true), "ncclKernel_Custom_one_shot_float");
  EXPECT_EQ(api_name(trace, bare, true), "one_shot");
}

TEST(OpNames, TorchSpellings) {
  EXPECT_EQ(torch_dtype("ncclBfloat16"), "BFloat16");
  EXPECT_EQ(torch_dtype("Unknown"), "Byte");
  EXPECT_EQ(torch_dtype("float"), "float");
  EXPECT_EQ(torch_collective("AllGather"), "_allgather_base");
  EXPECT_EQ(torch_collective("AllGatherV"), "allgatherv");
}

}  // namespace
}  // namespace lockstep::model
