// SPDX-License-Identifier: Apache-2.0
#include "readers/stacks/read_stacks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace lockstep::readers::stacks {
namespace {

StacksModel parse(const std::string& text, const std::string& file = "stacks.txt") {
  StacksModel model;
  parse_stacks(text, file, model);
  EXPECT_EQ(has_stack(text), !model.stacks.empty()) << text;
  return model;
}

const std::string kSpy =
    "Process 1234: python train.py\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
    "Thread 1300 (active+gil): \"Thread-1\"\n    run (threading.py:953)\n"
    "Thread 1234 (idle): \"MainThread\"\n    all_reduce (torch/distributed/distributed_c10d.py:2219)\n"
    "        Arguments:\n            tensor: <Tensor (x.py:3)>\n    wrapper "
    "(torch/distributed/c10d_logger.py:72)\n"
    "    step (train.py:95)\n    <module> (train.py:130)\n"
    "Thread 0x7F12 (idle): \"QueueFeeder\"\n    wait (threading.py:320)\n    feed (feed.py:7)\n";
std::string fault(const std::string& id, const std::string& frames) {
  return "Thread " + id + " (most recent call first):\n" + frames;
}
const std::string kWorker =
    fault("0x00007f01", "  File \"/usr/lib/python3.10/threading.py\", line 10 in wait\n");
const std::string kMain =
    fault("0x00007f02",
          "  File \"/usr/lib/python3.10/site-packages/torch/distributed/distributed_c10d.py\", line 2219 in "
          "barrier\n"
          "  File \"/srv/job/train.py\", line 95 in step\n");

TEST(Stacks, OfPySpyTheMainThreadCounts) {
  const StacksModel model =
      parse(kSpy + "Process 1235: python x\nThread 1235 (active): \"MainThread\"\n    f (x.py:1)\n");
  ASSERT_EQ(model.stacks.size(), 2u);
  EXPECT_EQ(model.stacks[0].pid, 1234);
  EXPECT_EQ(model.stacks[0].rank, -1);
  EXPECT_EQ(model.stacks[0].place, "train.py:95 (step), from train.py:130");
  EXPECT_EQ(model.stacks[0].called, "all_reduce") << "decorators tell nothing";
  EXPECT_EQ(model.stacks[1].pid, 1235);
  EXPECT_EQ(model.stacks[1].place, "x.py:1 (f)");
  EXPECT_EQ(model.stacks[1].called, "");
}

TEST(Stacks, AFileOfOneProcessMayBeNamedAfterItsRank) {
  EXPECT_EQ(parse(kSpy, "/x/stack_rank_3.txt").stacks.at(0).rank, 3);
  EXPECT_EQ(parse(kSpy + kSpy, "/x/stack_rank_3.txt").stacks.at(0).rank, -1);
  EXPECT_EQ(parse(kSpy, "/rank_3/stack-7.txt").stacks.at(0).rank, -1) << "the folder's name";
}

std::vector<int32_t> ranks_of_files(const std::vector<std::string>& names) {
  const test::TemporaryFolder folder;
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    paths.push_back(folder.path() + "/" + name);
    std::ofstream(paths.back()) << kSpy;
  }
  const auto model = read_stacks(paths);
  std::vector<int32_t> ranks;
  for (const Stack& stack : model->stacks) ranks.push_back(stack.rank);
  return ranks;
}

TEST(Stacks, ANumberOfALoneFileIsNoRank) {
  using Ranks = std::vector<int32_t>;
  EXPECT_EQ(ranks_of_files({"issue-863.txt"}), Ranks{-1});
  EXPECT_EQ(ranks_of_files({"stack_0.txt", "stack_3.txt"}), (Ranks{0, 3}));
  EXPECT_EQ(ranks_of_files({"stack_0.txt", "notes.txt"}), (Ranks{-1, -1}));
  EXPECT_EQ(ranks_of_files({"a_2.txt", "b_2.txt"}), (Ranks{-1, -1}));
  EXPECT_EQ(ranks_of_files({"stack_1234.txt", "stack_3.txt"}), (Ranks{-1, -1})) << "the process";
}

// Each line between two texts.
std::string between(const std::string& before, const std::string& text, const std::string& after) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += before + text.substr(at, end - at) + after + '\n';
    at = end + 1;
  }
  return out;
}
std::string utf16(const std::string& text) {
  std::string out = "\xFF\xFE";
  for (const char c : text) out.append(1, c).push_back('\0');
  return out;
}

TEST(Stacks, AreThoseOfAPageAMailATerminalAndAWindowsShell) {
  for (const std::string& text :
       {between("> ", kSpy, ""), between("\033[32m", kSpy, "\033[0m"),
        between("<code>", kSpy, "</code><br/>"), between("    ", kSpy, "\r"), utf16(kSpy)}) {
    const StacksModel model = parse(text);
    ASSERT_EQ(model.stacks.size(), 1u) << text;
    EXPECT_EQ(model.stacks[0].pid, 1234) << text;
    EXPECT_EQ(model.stacks[0].called, "all_reduce") << text;
  }
}

TEST(Stacks, OfFaulthandlerTheLastThreadIsTheMainOne) {
  const StacksModel model =
      parse("Current thread 0x00007f (most recent call first):\n  <no Python frame>\n\n" + kWorker + "\n" +
            kMain + "\nExtension modules: a\n");
  ASSERT_EQ(model.stacks.size(), 1u);
  EXPECT_EQ(model.stacks[0].place, "train.py:95 (step)");
  EXPECT_EQ(model.stacks[0].called, "barrier");
}

TEST(Stacks, TheDebugServerTellsRanksAndHosts) {
  const StacksModel model =
      parse("=== Rank 0: http://node0:29600 ===\n" + kWorker + "\n" + kMain +
            "=== Rank 1: http://node1:29600 ===\nError: 500\n=== Rank 2: node2 ===\n" + kSpy);
  ASSERT_EQ(model.stacks.size(), 2u);
  EXPECT_EQ(model.stacks[0].rank, 0);
  EXPECT_EQ(model.stacks[0].host, "node0");
  EXPECT_EQ(model.stacks[0].line, 2u);
  EXPECT_EQ(model.stacks[1].pid, 1234);
  EXPECT_EQ(model.stacks[1].rank, 2) << "a process' own head stands below the rank's";
  EXPECT_EQ(model.stacks[1].host, "node2");
}

TEST(Stacks, ARanksHeadIsOfTheFirstProcessBelowIt) {
  const StacksModel model = parse("=== Rank 2: node2 ===\n" + kSpy + "Process 9: python worker.py\n" + kMain);
  ASSERT_EQ(model.stacks.size(), 2u);
  EXPECT_EQ(model.stacks[0].rank, 2);
  EXPECT_EQ(model.stacks[1].rank, -1);
  EXPECT_EQ(model.stacks[1].pid, 9);
}

TEST(Stacks, LinesOfSeveralRanksInOneStreamAreKeptApart) {
  std::string text = "x\n";
  for (const std::string rank : {"[rank1]: ", "[rank4]:"}) {
    for (std::string_view rest = kMain; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1))
      text += rank + std::string(rest.substr(0, rest.find('\n') + 1));
  }
  text += "  File \"/srv/job/other.py\", line 1 in nobody\n";
  const StacksModel model = parse(text);
  ASSERT_EQ(model.stacks.size(), 2u);
  EXPECT_EQ(model.stacks[0].rank, 1);
  EXPECT_EQ(model.stacks[1].rank, 4);
  EXPECT_EQ(model.stacks[1].place, "train.py:95 (step)");
}

TEST(Stacks, AFileThatCannotBeReadIsTold) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "rank_0.txt") << kSpy;
  std::ofstream(folder / "rank_1.txt") << kSpy;
  std::filesystem::resize_file(folder / "rank_1.txt", (uintmax_t{1} << 30) + 1);
  const auto model = read_stacks({folder / "rank_0.txt", folder / "rank_1.txt", folder / "absent.txt"});
  ASSERT_TRUE(model);
  EXPECT_EQ(model->stacks.size(), 1u);
  ASSERT_EQ(model->unreadable_files.size(), 2u);
  EXPECT_NE(model->unreadable_files[0].find("larger than 1 GiB"), std::string::npos);
}

TEST(Stacks, OtherTextHoldsNone) {
  for (const char* text :
       {"", "Thread 1 started\n", "Thread (idle)\n", "a Thread 1234 (idle): x\n",
        "Process 1: x\n  f (x.py:1)\n", "Traceback (most recent call last):\n  File \"x.py\", line 3, in f\n",
        "Thread 0x1 (most recent call first): x\n"})
    EXPECT_TRUE(parse(text).stacks.empty()) << text;
}

TEST(Stacks, OfACutTextWhatIsThereCounts) {
  for (size_t length = 0; length < kSpy.size(); length += 5) parse(kSpy.substr(0, length));
}

}  // namespace
}  // namespace lockstep::readers::stacks
