// SPDX-License-Identifier: Apache-2.0
// What terminals, shells and pasting do to lines.
#include "readers/nccl_log/wrap_width.h"

#include <gtest/gtest.h>

#include "base/lines/utf16.h"
#include "readers/nccl_log/log_parser.h"

namespace lockstep::readers::nccl_log {
namespace {

std::string watchdog(int rank) {
  return "[rank" + std::to_string(rank) + "]:[E424 01:11:21.16 ProcessGroupNCCL.cpp:629] [Rank " +
         std::to_string(rank) +
         "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=BROADCAST, NumelIn=112, "
         "NumelOut=112, Timeout(ms)=1800000) ran for 1800010 milliseconds before timing out.";
}
const std::string kText = watchdog(1) + '\n' + watchdog(2) + '\n' +
                          "n1:5:5 [0] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by "
                          "remote peer 198.51.100.3<36138>\n" +
                          "n1:5:5 [0] NCCL INFO Using network IB\n";

std::string wrapped(const std::string& text, size_t width, bool padded = false) {
  std::string out;
  size_t column = 0;
  for (const char c : text) {
    if (c == '\n') {
      if (padded) out += std::string(width - column, ' ');
      column = 0;
    } else if (column == width) {
      out += '\n';
      column = 0;
    }
    out += c;
    column += c == '\n' ? 0 : 1;
  }
  return out;
}

LogModel parse(const std::string& text) {
  LogParser parser;
  parser.begin_file("a.log");
  parser.feed(text);
  parser.end_file();
  return parser.take();
}

void expect_all(const LogModel& model) {
  ASSERT_EQ(model.torch.size(), 2u);
  for (const TorchLine& line : model.torch) {
    EXPECT_EQ(line.remark, TorchRemark::kTimeout);
    EXPECT_EQ(line.op, "BROADCAST");
    EXPECT_EQ(line.seq, 4);
    EXPECT_EQ(line.out, 112);
    EXPECT_EQ(line.milliseconds, 1800010);
  }
  EXPECT_EQ(model.of(LineKind::kPeerClosed).size(), 1u);
  EXPECT_EQ(model.of(LineKind::kNetworkUsed).size(), 1u);
}

TEST(WrapWidth, LinesThatATerminalBrokeAreJoined) {
  expect_all(parse(kText));
  for (const size_t width : {size_t{80}, size_t{100}, size_t{120}}) {
    EXPECT_EQ(wrap_width(wrapped(kText, width)), width);
    expect_all(parse(wrapped(kText, width)));
  }
}

TEST(WrapWidth, EvidenceIsWhereALineBegins) {
  const LogModel model = parse(wrapped(kText, 80));
  EXPECT_EQ(model.torch[0].first.line, 1u);
  EXPECT_EQ(model.torch[1].first.line, 4u);
}

TEST(WrapWidth, WholeLinesOfOneLengthAreNotBroken) {
  EXPECT_EQ(wrap_width(kText), 0u);
  std::string alike;
  for (int rank = 0; rank < 4; ++rank) alike += watchdog(rank) + '\n';
  EXPECT_EQ(wrap_width(alike), 0u);
  EXPECT_EQ(wrap_width(""), 0u);
  EXPECT_EQ(wrap_width("short\nlines\nalone\n"), 0u);
}

TEST(WrapWidth, RowsOfATableOfNcclTestsAreLines) {
  std::string table =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
      "busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
      "(GB/s)       \n";
  for (const char* size :
       {"1048576        262144", "2097152        524288", "4194304       1048576", "8388608       2097152",
        "1677721       4194304", "3355443       8388608", "6710886      16777216", "1342177      33554432"})
    table += "     " + std::string(size) +
             "     float     sum      -1    11.05    0.79    0.79     17       11    0.79    0.79      0\n";
  EXPECT_EQ(wrap_width(table), 0u);
}

TEST(WrapWidth, Utf16OfEitherOrder) {
  for (const bool big : {false, true}) {
    std::string text = big ? "\xFE\xFF" : "\xFF\xFE";
    for (const char c : kText) text += big ? std::string{'\0', c} : std::string{c, '\0'};
    expect_all(parse(text));
  }
  Utf16 pair;
  std::string text;
  for (const char c : std::string("\xFF\xFE\x3D\xD8\x00\xDE\x00\xDE", 8)) text += pair.utf8({&c, 1});
  EXPECT_EQ(text, "\xF0\x9F\x98\x80?");
}

TEST(WrapWidth, LinesOfOneLengthThatBeginWithALevelAreLines) {
  std::string text, glog;
  for (const char* pid : {"4711", "4712", "4713"}) {
    text += "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process " + std::string(pid) +
            " closing signal SIGTERM\n";
    glog +=
        "W1223 05:17:58.996000 3304089 torch/distributed/elastic/multiprocessing/api.py:908] Sending "
        "process " +
        std::string(pid) + " SIGTERM\n";
  }
  EXPECT_EQ(wrap_width(text), 0u);
  EXPECT_EQ(wrap_width(glog), 0u);
  EXPECT_TRUE(may_continue("Warnings are words"));
  EXPECT_TRUE(may_continue("E12x3 is no head"));
}

TEST(WrapWidth, APasteOfOneLineIsManyLines) {
  std::string one = kText;
  for (char& c : one) c = c == '\n' ? ' ' : c;
  const LogModel model = parse(one);
  ASSERT_EQ(model.torch.size(), 2u);
  EXPECT_EQ(model.torch[1].rank, 2);
  const LogModel headed = parse(
      "n1:5:5 [0] NCCL INFO Using network IB n2:6:6 [1] NCCL INFO Using network Socket n1:5:5 [0] NCCL INFO "
      "NCCL_NVLS_ENABLE set by environment to 0. n2:6:6 [1] NCCL INFO cudaDriverVersion 12080\n");
  EXPECT_EQ(headed.of(LineKind::kNetworkUsed).size(), 2u);
  EXPECT_EQ(headed.of(LineKind::kEnvironment).size(), 1u);
  EXPECT_EQ(headed.coverage.torn, 0u);
}

TEST(WrapWidth, HardBlanksTabsAndRunsOfBlanksAreBlanks) {
  for (const char* line :
       {"n1:5:5\xC2\xA0[0]\xC2\xA0NCCL\xC2\xA0INFO\xC2\xA0Using network IB\n",
        "n1:5:5\t[0]\tNCCL\tINFO\tUsing network IB\n", "n1:5:5  [0]  NCCL  INFO  Using  network IB\n"}) {
    const LogModel model = parse(line);
    ASSERT_EQ(model.of(LineKind::kNetworkUsed).size(), 1u) << line;
    EXPECT_EQ(model.processes[0].host, "n1");
    EXPECT_EQ(model.coverage.torn, 0u);
  }
}

// Each begins with a launcher's mark: none goes on what the one before it said, however alike their lengths
// are.
TEST(WrapWidth, LinesOfOneMarkAreWhole) {
  std::string text;
  for (const char letter : {'a', 'b', 'c', 'd', 'e', 'f'})
    text += "stderr: " + std::string(92, letter) + '\n';
  EXPECT_EQ(wrap_width(text), 0u);
  EXPECT_TRUE(begin_alike("stderr: a", "stderr: b"));
  EXPECT_FALSE(begin_alike("stderr: a", "stdout: b"));
  EXPECT_FALSE(begin_alike("words a", "words b"));
  EXPECT_FALSE(begin_alike("", ""));
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
