// SPDX-License-Identifier: Apache-2.0
#include "model/names/op_names.h"

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

TEST(OpNames, TorchNamesBecomeNcclFunctions) {
  for (const auto& [torch, nccl] : std::initializer_list<std::pair<const char*, const char*>>{
           {"nccl:all_reduce", "AllReduce"},
           {"nccl:_all_gather_base", "AllGather"},
           {"nccl:all_gather_into_tensor_coalesced", "AllGather"},
           {"nccl:reduce_scatter_tensor_coalesced", "ReduceScatter"},
           {"nccl:all_reduce_barrier", "Barrier"},
           {"nccl:send 0->1", "Send"},
           {"xccl:recv 1<-0", "Recv"},
           {"nccl:_broadcast_oop", "Broadcast"},
           {"all_to_allv", "AlltoAll"},
           {"nccl:coalesced", "coalesced"},
           {"ucc:new_window", "new_window"},
           {"", ""}}) {
    EXPECT_EQ(nccl_func(torch), nccl) << torch;
  }
  EXPECT_EQ(nccl_dtype("BFloat16"), "ncclBfloat16");
  EXPECT_EQ(nccl_dtype("QInt8"), "QInt8");
}

}  // namespace
}  // namespace lockstep::model
