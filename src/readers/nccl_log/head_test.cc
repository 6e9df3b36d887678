// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/head.h"

#include <gtest/gtest.h>

#include <vector>

#include "readers/nccl_log/line_splitter.h"

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

TEST(Head, RayCountsWhatItLeavesOut) {
  std::string_view body = "Using network IB [repeated 16x across cluster]";
  EXPECT_EQ(cut_repeat_mark(body), 16u);
  EXPECT_EQ(body, "Using network IB");
  EXPECT_EQ(cut_repeat_mark(body), 0u);
}

std::vector<std::string> lines_of(LineSplitter& splitter, const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  const auto visit = [&](std::string_view line) { lines.emplace_back(line); };
  for (const std::string& piece : pieces) splitter.feed(piece, visit);
  splitter.finish(visit);
  return lines;
}

TEST(LineSplitter, PiecesMayEndAnywhere) {
  LineSplitter splitter;
  EXPECT_EQ(lines_of(splitter, {"on", "e\ntwo\n\nfo", "ur\r\n", "last"}),
            (std::vector<std::string>{"one", "two", "", "four", "last"}));
}

TEST(LineSplitter, TakesAwayWhatIsNoText) {
  LineSplitter splitter;
  EXPECT_EQ(lines_of(splitter, {"\033[1;31mred\033[0m\n", std::string("\0\0ze\0ro\n", 8), "> quoted\n",
                                "a\xE2\x80\x8B"
                                "b\n",
                                "end \033[", "\n"}),
            (std::vector<std::string>{"red", "zero", "quoted", "ab", "end "}));
}

TEST(LineSplitter, LongLinesAreCutAndCounted) {
  LineSplitter splitter;
  std::vector<std::string> pieces(40, std::string(10000, 'x'));
  pieces.push_back("\nshort\n");
  const auto lines = lines_of(splitter, pieces);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].size(), LineSplitter::kLineMost);
  EXPECT_EQ(lines[1], "short");
  EXPECT_EQ(splitter.cut_lines(), 1u);
  EXPECT_EQ(splitter.cut_bytes(), 400000 - LineSplitter::kLineMost);
}

TEST(LineSplitter, ALineOfTenGigabytesIsCutLikeAnyOther) {
  LineSplitter splitter;
  size_t lines = 0, longest = 0;
  const auto visit = [&](std::string_view line) {
    ++lines;
    longest = std::max(longest, line.size());
  };
  const std::string piece(32 << 20, 'x');
  constexpr uint64_t kPieces = 320;
  for (uint64_t i = 0; i < kPieces; ++i) splitter.feed(piece, visit);
  splitter.feed("\nshort\n", visit);
  EXPECT_EQ(lines, 2u);
  EXPECT_EQ(longest, LineSplitter::kLineMost);
  EXPECT_EQ(splitter.cut_bytes(), kPieces * piece.size() - LineSplitter::kLineMost);
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
