// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/paste.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "readers/nccl_log/testing/parse.h"

namespace lockstep::readers::nccl_log {
namespace {

const std::vector<std::string> kLines = {
    "E0303 04:05:06.123000 77 api.py:9] failed (exitcode: -11) local_rank: 2 (pid: 88) of binary: /usr/bin/python",
    "Traceback (most recent call last):",
    "  File \"/srv/job/train.py\", line 9, in <module>",
    "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, unhandled cuda error, NCCL version 2.26.2",
    "ncclUnhandledCudaError: Call to CUDA function failed.",
    "Last error:",
    "Cuda failure 802 'system not yet initialized'",
    "(TrainWorker pid=77) n1:5:5 [0] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote peer h2<9>",
    "(TrainWorker pid=77) n1:5:5 [0] NCCL INFO misc/socket.cc:80 -> 6",
    "n2:6:6 [1] INFO init.cu:9 -> 3"};

std::string joined(const char* between) {
  std::string text;
  for (const std::string& line : kLines) text += (text.empty() ? "" : between) + line;
  return text + '\n';
}

size_t facts_of(const LogModel& model, LineKind kind) {
  return model.facts_of_kind[static_cast<size_t>(kind)].size();
}

TEST(Paste, HoldsTheFactsOfItsLines) {
  const LogModel lines = parse(joined("\n")), paste = parse(joined(" "));
  for (size_t kind = 0; kind < kLineKinds; ++kind)
    EXPECT_EQ(facts_of(paste, static_cast<LineKind>(kind)), facts_of(lines, static_cast<LineKind>(kind)))
        << kind;
  EXPECT_GE(paste.facts.size(), 5U);
  EXPECT_EQ(paste.coverage.torn, 0U);
}

TEST(Paste, IsWhatHasNextToNoLineEnds) {
  EXPECT_TRUE(is_paste(joined(" ")));
  EXPECT_FALSE(is_paste(joined("\n")));
  EXPECT_FALSE(is_paste("one line, however long, is one line: " + std::string(400, 'x') + '\n'));
  EXPECT_FALSE(is_paste(kLines[7] + '\n'));
  EXPECT_FALSE(is_paste(""));
}

TEST(Paste, APartIsNeverEmpty) {
  std::string text = joined(" ");
  for (size_t cut = 1; cut < text.size(); ++cut) {
    std::string_view rest = std::string_view(text).substr(cut);
    while (!rest.empty()) {
      const size_t length = pasted_line(rest);
      ASSERT_GT(length, 0U);
      ASSERT_LE(length, rest.size());
      rest.remove_prefix(length);
    }
  }
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
