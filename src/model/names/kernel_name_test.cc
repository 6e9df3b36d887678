// SPDX-License-Identifier: Apache-2.0
#include "model/names/kernel_name.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(KernelName, OfNcclOldAndNew) {
  EXPECT_EQ(work_of_kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"), KernelWork::kAllReduce);
  EXPECT_EQ(work_of_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            KernelWork::kAllReduce);
  EXPECT_EQ(work_of_kernel("ncclDevKernel_AllGatherV_RING_LL(x)"), KernelWork::kAllGather);
  EXPECT_EQ(work_of_kernel("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)"), KernelWork::kReduceScatter);
  EXPECT_EQ(work_of_kernel("ncclDevKernel_Reduce_Sum_bf16_RING_LL(x)"), KernelWork::kReduce);
  EXPECT_EQ(work_of_kernel("ncclDevKernel_SendRecv(x)"), KernelWork::kSendRecv);
  EXPECT_EQ(work_of_kernel("ncclDevKernel_Generic_4(x)"), KernelWork::kAny);
  EXPECT_EQ(work_of_kernel("ncclDevKernelDebug_Generic(x)"), KernelWork::kAny);
  EXPECT_EQ(work_of_kernel("ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)"),
            KernelWork::kAllReduce);
  EXPECT_EQ(work_of_kernel("ncclSymkDevKernel_AllGather_ST(x)"), KernelWork::kAllGather);
  EXPECT_EQ(work_of_kernel("void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)"),
            KernelWork::kAny);
  EXPECT_EQ(work_of_kernel("void oneRankReduce<FuncPreMulSum<float>>(void*)"), KernelWork::kAny);
}

TEST(KernelName, WhoseItIs) {
  for (const char* name : {"ncclDevKernel_SendRecv(x)", "ncclSymkDevKernel_AllGather_ST(x)",
                           "ncclKernel_AllReduce_RING_LL_Sum_float(x)", "void rcclGenericKernel<1, false>(x)",
                           "rccl_main_kernel", "rccl_main_kernel_debug", "ncclDevKernelDebug_Generic(x)",
                           "ncclDevKernel_Generic_4", "mscclKernel_Sum_float_LL"})
    EXPECT_TRUE(is_nccl_kernel(name)) << name;
  for (const char* name : {"void oneRankReduce<FuncPreMulSum<float>>(void*)", "gemm", "ncclx", "",
                           "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(x)"})
    EXPECT_FALSE(is_nccl_kernel(name)) << name;
}

TEST(KernelName, OfOtherLibrariesThatCommunicate) {
  for (const char* name :
       {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(x)",
        "void sglang::cross_device_reduce_2stage<half, 4>(x)",
        "void quickreduce::allreduce_prototype_twoshot<x>()", "allreduce_fusion_kernel_oneshot_lamport<x>",
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<half>(x)", "twoshotAllreduceKernel",
        "(anonymous namespace)::multimem_all_reduce_kernel<float, 16>",
        "two_shot_all_reduce_kernel_inplace<x>", "void deep_ep::internode_ll::dispatch<true>(x)",
        "void deep_ep::intranode::combine<x>()", "nvshmemi_transfer", "mscclpp::allreduce1"})
    EXPECT_EQ(work_of_kernel(name), KernelWork::kAny) << name;
}

TEST(KernelName, WhatComputesDoesNotCommunicate) {
  for (const char* name :
       {"void gemm<float>(float*)", "ncclWorkload", "nccl", "", "void reduce_kernel<512, 1>(x)",
        "sm90_xmma_gemm_bf16bf16", "one_shot_sort", "void allreduce_norm(x)"})
    EXPECT_EQ(work_of_kernel(name), KernelWork::kNone) << name;
}

TEST(KernelName, AKernelStandsForSomeFunctions) {
  EXPECT_TRUE(may_run(KernelWork::kSendRecv, "AlltoAll"));
  EXPECT_TRUE(may_run(KernelWork::kAllReduce, "Barrier"));
  EXPECT_TRUE(may_run(KernelWork::kBroadcast, "AllGatherV"));
  EXPECT_FALSE(may_run(KernelWork::kSendRecv, "AllReduce"));
  EXPECT_FALSE(may_run(KernelWork::kNone, "AllReduce"));
  EXPECT_TRUE(may_run(KernelWork::kAny, "whatever"));
}

}  // namespace
}  // namespace lockstep::model
