// SPDX-License-Identifier: Apache-2.0
#include "readers/stacks/native_stack.h"

#include <gtest/gtest.h>

#include "readers/stacks/read_stacks.h"

namespace lockstep::readers::stacks {
namespace {

StacksModel stacks_of(const std::string& text) {
  StacksModel model;
  parse_stacks(text, "paste.txt", model);
  EXPECT_EQ(has_stack(text), !model.stacks.empty()) << text;
  return model;
}

const std::string kInProxy =
    "Thread 3 (Thread 0x7f01 (LWP 4250) \"python\"):\n"
    "#0  0x00007f0000000001 in poll () from /lib64/libc.so.6\n"
    "#1  0x00007f0000000002 in ncclProxyProgress (state_=0x55) at proxy.cc:912\n\n";
const std::string kInNccl =
    "Thread 2 (Thread 0x7f02 (LWP 4249)):\n"
    "#0  0x00007f0000000003 in __GI___pthread_timedjoin_ex (threadid=1, abstime=0x0) at\n"
    "    pthread_join_common.c:89\n"
    "#1  0x00007f0000000004 in commReclaim(ncclComm*) () from /opt/libnccl.so.2\n"
    "#2  ncclCommAbort (comm=0x55) at init.cc:2030\n"
    "#3  0x00007f0000000005 in c10d::NCCLComm::ncclCommAbort(std::optional<std::string>) () from /opt/libtorch.so\n\n";
const std::string kInCuda =
    "Thread 1 (Thread 0x7f03 (LWP 4242)):\n"
    "#0  0x00007f0000000006 in cuStreamSynchronize () from /lib64/libcuda.so.1\n"
    "#1  0x00007f0000000007 in ?? () from /opt/libcudart.so.12\n"
    "#2  0x00007f0000000008 in cudaStreamSynchronize () from /opt/libcudart.so.12\n";

TEST(NativeStack, TheThreadThatCalledNcclCounts) {
  for (const std::string& text : {kInProxy + kInNccl + kInCuda, kInCuda + kInNccl + kInProxy}) {
    const StacksModel model = stacks_of(text);
    ASSERT_EQ(model.stacks.size(), 1u);
    EXPECT_EQ(model.stacks[0].pid, 4242);
    EXPECT_EQ(model.stacks[0].place, "ncclCommAbort");
    EXPECT_EQ(model.stacks[0].called, "commReclaim");
    EXPECT_EQ(model.stacks[0].line, 1u);
  }
  const StacksModel model = stacks_of(kInProxy + kInCuda);
  ASSERT_EQ(model.stacks.size(), 1u);
  EXPECT_EQ(model.stacks[0].place, "cudaStreamSynchronize");
  EXPECT_EQ(model.stacks[0].called, "cuStreamSynchronize");
  EXPECT_EQ(stacks_of(kInProxy).stacks.at(0).place, "poll");
}

TEST(NativeStack, AThreadThatIsThereAgainIsOfTheNextProcess) {
  const StacksModel model = stacks_of(kInNccl + kInCuda + kInProxy + kInCuda);
  ASSERT_EQ(model.stacks.size(), 2u);
  EXPECT_EQ(model.stacks[0].place, "ncclCommAbort");
  EXPECT_EQ(model.stacks[1].place, "cudaStreamSynchronize");
  const StacksModel beside =
      stacks_of("Process 9: python x\nThread 9 (active): \"MainThread\"\n    f (x.py:1)\n\n" + kInCuda);
  ASSERT_EQ(beside.stacks.size(), 2u);
  EXPECT_EQ(beside.stacks[0].place, "x.py:1 (f)");
}

// As people paste a few frames.
TEST(NativeStack, NeedsNoHead) {
  const StacksModel model = stacks_of(
      "It hangs here:\n> #0  0x00007f0000000001 in sched_yield () from /lib64/libc.so.6\n"
      "> #1  0x00007f0000000002 in bootstrapAllGather () from /opt/libnccl.so.2\n"
      "> #2  0x00007f0000000003 in ncclCommInitRank () from /opt/libnccl.so.2\n");
  ASSERT_EQ(model.stacks.size(), 1u);
  EXPECT_EQ(model.stacks[0].place, "ncclCommInitRank");
  EXPECT_EQ(model.stacks[0].called, "bootstrapAllGather");
  EXPECT_EQ(model.stacks[0].line, 2u);
  EXPECT_EQ(stacks_of("[rank3]: #0  0x01 in poll () from /lib64/libc.so.6\n").stacks.at(0).rank, 3);
}

TEST(NativeStack, WhatIsNoneIsNone) {
  for (const char* text :
       {"#1 a reason (why)\n", "#0 all_reduce from /srv/torch/distributed/distributed_c10d.py:2501\n",
        "    #0 0x4a21 in main /srv/a.c:5:3\n", "#1 0x4a22 in __libc_start_main (/lib/libc.so.6+0x23)\n",
        "frame #0: c10::Error::Error(c10::SourceLocation) + 0x96 (0x7f00 in /opt/libc10.so)\n", "#0  0x\n",
        "#\n", "#0  0x12 in \n", "#99999999999 0x12 in f ()\n", "x #0  0x12 in f ()\n",
        "Thread 1 (Thread 0x7f (LWP 1)):\n"})
    EXPECT_TRUE(stacks_of(text).stacks.empty()) << text;
}

}  // namespace
}  // namespace lockstep::readers::stacks
