// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/head.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::readers::nccl_log {
namespace {

TEST(Head, OfAnInfoLine) {
  Head head;
  ASSERT_TRUE(find_head("gpu-3:512:640 [7] NCCL INFO Using network IB", head));
  EXPECT_EQ(head.host, "gpu-3");
  EXPECT_EQ(head.host_pid, "gpu-3:512");
  EXPECT_EQ(head.pid, 512);
  EXPECT_EQ(head.tid, 640);
  EXPECT_EQ(head.device, 7);
  EXPECT_EQ(head.level, Level::kInfo);
  EXPECT_EQ(head.body, "Using network IB");
  EXPECT_EQ(head.prefix, "");
}

TEST(Head, OfAWarningWithTimeAndPlace) {
  for (const char* line :
       {"[2031-02-03 04:05:06] n1:5:6 [2] misc/socket.cc:50 NCCL WARN it broke",
        "[2031-02-03 04:05:06] n1:5:6 [2] net_ib/p2p.cc:610 (someFunction) NCCL WARN it broke",
        "n1:5:6 [2] myResult_t progress(Comm*):1231 NCCL WARN it broke"}) {
    Head head;
    ASSERT_TRUE(find_head(line, head)) << line;
    EXPECT_EQ(head.host, "n1");
    EXPECT_EQ(head.device, 2);
    EXPECT_EQ(head.level, Level::kWarn);
    EXPECT_EQ(head.body, "it broke");
  }
}

TEST(Head, OfOldReleasesAndOfCalls) {
  Head head;
  ASSERT_TRUE(find_head("old:31:32 [0] include/socket.h:360 WARN Call to connect failed", head));
  EXPECT_EQ(head.level, Level::kWarn);
  EXPECT_EQ(head.body, "Call to connect failed");
  ASSERT_TRUE(find_head("old:31:32 [0] INFO NET : Using interface eth0", head));
  EXPECT_EQ(head.body, "NET : Using interface eth0");
  ASSERT_TRUE(find_head("n1:5:6 NCCL CALL ncclAllReduce(0x1,0x2,4)", head));
  EXPECT_EQ(head.level, Level::kCall);
  EXPECT_EQ(head.device, -1);
}

TEST(Head, NoneWhereItIsNotWhole) {
  for (const char* line : {"", "NCCL INFO", "10:12:33 NCCL INFO x", "a:1:2 NCCL INFO x",
                           "a:1 [0] NCCL INFO x", "a:1:2 [x] NCCL INFO x", ":1:2 [0] NCCL INFO x",
                           "a:1:2 [0] NCCL INFORM x", "a:b:2 [0] NCCL WARN x", " [", "[] NCCL INFO "}) {
    Head head;
    EXPECT_FALSE(find_head(line, head)) << line;
  }
}

TEST(Head, LaunchersNameRanks) {
  struct {
    const char* line;
    int32_t rank;
  } const cases[] = {{"[1,9]<stdout>:n1:5:6 [0] NCCL INFO x", 9},
                     {"[rank12]: n1:5:6 [0] NCCL INFO x", 12},
                     {" 3: n1:5:6 [0] NCCL INFO x", 3},
                     {"(Worker pid=5, ip=198.51.100.9) n1:5:6 [0] NCCL INFO x", -1},
                     {"2031-02-03T04:05:06Z n1:5:6 [0] NCCL INFO x", -1},
                     {"[default4]: n1:5:6 [0] NCCL INFO x", -1},  // a local rank
                     {"n1:5:6 [0] NCCL INFO x", -1}};
  for (const auto& expected : cases) {
    Head head;
    ASSERT_TRUE(find_head(expected.line, head)) << expected.line;
    EXPECT_EQ(head.host, "n1");
    EXPECT_EQ(rank_of_prefix(head.prefix), expected.rank) << expected.line;
  }
}

TEST(Head, TornLinesHoldTwo) {
  Head head, next;
  ASSERT_TRUE(find_head("n1:5:6 [0] NCCL INFO Using net n2:7:8 [1] NCCL INFO Using network IB", head));
  EXPECT_EQ(find_torn_head(head.body, next), 10u);
  EXPECT_EQ(next.host_pid, "n2:7");
  EXPECT_EQ(find_torn_head("Using network IB", next), std::string_view::npos);
  EXPECT_TRUE(looks_torn("n1:5:6 [0] NCCL ININFO 10-24"));
  EXPECT_FALSE(looks_torn("my own words on NCCL and its logs"));
}

// Of NCCL 2.0 to 2.2, whose heads lack the word NCCL.
TEST(Head, AnOldHeadMayHaveAnotherNameForItsHost) {
  Head head;
  ASSERT_TRUE(find_weak_head("(my server) [0] include/socket.h:185 WARN Call to connect failed", head));
  EXPECT_EQ(head.body, "Call to connect failed");
  EXPECT_EQ(head.level, Level::kWarn);
  EXPECT_FALSE(find_weak_head("(my server) [0] lib/include/socket.h:185 WARN Call failed", head));
  EXPECT_FALSE(find_weak_head("(my server) [0] include/socket.h WARN Call failed", head));
  ASSERT_TRUE(find_weak_head("WARN: Function: open_it Line: 459: NET/OFI Couldn't open it", head));
  EXPECT_EQ(head.body, "NET/OFI Couldn't open it");
  EXPECT_FALSE(find_weak_head("INFO: Function: open_it Line: 459: NET/OFI opened", head));
  EXPECT_FALSE(find_weak_head("WARN: Function: open_it Line: x: NET/OFI opened", head));
}

TEST(Head, RayCountsWhatItLeavesOut) {
  std::string_view body = "Using network IB [repeated 16x across cluster]";
  EXPECT_EQ(cut_repeat_mark(body), 16u);
  EXPECT_EQ(body, "Using network IB");
  EXPECT_EQ(cut_repeat_mark(body), 0u);
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
