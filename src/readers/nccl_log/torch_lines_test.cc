// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/torch_lines.h"

#include <gtest/gtest.h>

#include "readers/nccl_log/log_parser.h"

namespace lockstep::readers::nccl_log {
namespace {

std::vector<TorchLine> parse(std::string_view text) {
  LogParser parser;
  parser.begin_file("a.log");
  parser.feed(text);
  parser.end_file();
  return parser.take().torch;
}

TorchLine only(std::string_view text) {
  const auto lines = parse(text);
  EXPECT_EQ(lines.size(), 1u) << text;
  return lines.empty() ? TorchLine() : lines[0];
}

const std::string kTimedOut =
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=26, "
    "NumelOut=26, Timeout(ms)=12000) ran for 12059 milliseconds before timing out.";

TEST(TorchLines, ATimeoutBehindEveryPrefix) {
  struct {
    const char* prefix;
    int32_t rank;
  } const cases[] = {
      {"[rank3]:[E1118 20:32:23.955028747 ProcessGroupNCCL.cpp:629] [Rank 1] ", 3},
      {"[rank3]:[E118 20:32:23.955028 ProcessGroupNCCL.cpp:629] [Rank 1] ", 3},
      {"[rank1]:[E ProcessGroupNCCL.cpp:523] [Rank 1] ", 1},
      {"[E ProcessGroupNCCL.cpp:523] [Rank 6] ", 6},
      {"E1028 12:13:38.405081 632355 ProcessGroupNCCL.cpp:843] [Rank 2] ", 2},
      {"[default4]:[rank12]:[E1118 20:32:23.955028747 ProcessGroupNCCL.cpp:629] [Rank 4] ", 12},
      {"(RayWorkerWrapper pid=581, ip=198.51.100.9) [rank7]:[E1118 20:32:23.955028747 "
       "ProcessGroupNCCL.cpp:629] ",
       7},
      {"14: [E ProcessGroupNCCL.cpp:523] [Rank 2] ", 14},
      {"[1,11]<stderr>:[E ProcessGroupNCCL.cpp:523] [Rank 2] ", 11},
      {"2031-02-03T04:05:06Z [rank5]:[E ProcessGroupNCCL.cpp:523] ", 5},
      {"[pod/job-0/main] [rank5]:[E ProcessGroupNCCL.cpp:523] ", 5},
      {"\033[31m[rank5]:[E ProcessGroupNCCL.cpp:523]\033[0m ", 5},
      {"[E ProcessGroupNCCL.cpp:523] ", -1}};
  for (const auto& expected : cases) {
    const TorchLine line = only(expected.prefix + kTimedOut + "\r\n");
    EXPECT_EQ(line.remark, TorchRemark::kTimeout);
    EXPECT_EQ(line.rank, expected.rank) << expected.prefix;
    EXPECT_EQ(line.seq, 9);
    EXPECT_EQ(line.op, "ALLREDUCE");
    EXPECT_EQ(line.func, "AllReduce");
    EXPECT_EQ(line.in, 26);
    EXPECT_EQ(line.milliseconds, 12059);
    EXPECT_EQ(line.first.line, 1u);
  }
}

TEST(TorchLines, WorkOfOlderReleases) {
  const TorchLine shaped = only(
      "[E ProcessGroupNCCL.cpp:821] [Rank 0] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=7, "
      "OpType=_ALLGATHER_BASE, TensorShape=[4, 5], Timeout(ms)=1800000) ran for 1800116 milliseconds before "
      "timing out.\n");
  EXPECT_EQ(shaped.shape, "4, 5");
  EXPECT_EQ(shaped.func, "AllGather");
  const TorchLine unnumbered = only(
      "[Rank 0] Work WorkNCCL(OpType=BROADCAST, Timeout(ms)=1800000) timed out in blocking wait "
      "(NCCL_BLOCKING_WAIT=1).\n");
  EXPECT_EQ(unnumbered.seq, -1);
  EXPECT_EQ(unnumbered.func, "Broadcast");
}

TEST(TorchLines, ProgressOfEveryRelease) {
  struct {
    const char* text;
    const char* group;
    const char* description;
    int32_t group_rank;
    int64_t seq;
  } const cases[] = {{"[rank3]:[E ProcessGroupNCCL.cpp:1] [PG ID 2 PG GUID 5(mesh_tp) Rank 1]  failure "
                      "detected by watchdog at work "
                      "sequence id: 9 PG status: last enqueued work: 12, last completed work: 8\n",
                      "5", "mesh_tp", 1, 9},
                     {"[rank3]:[E ProcessGroupNCCL.cpp:1] [PG 0 (default_pg) Rank 3] Exception (either an "
                      "error or timeout) detected by "
                      "watchdog at work: 9, last enqueued NCCL work: 12, last completed NCCL work: 8.\n",
                      "0", "default_pg", 3, 9},
                     {"[rank3]:[E ProcessGroupNCCL.cpp:1] [PG 4 Rank 2] Timeout at NCCL work: 9, last "
                      "enqueued NCCL work: 12, last "
                      "completed NCCL work: 8.\n",
                      "4", "", 2, 9},
                     {"[rank3]:[E ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0 Rank 3] NCCL error is detected "
                      "by watchdog at work: 9, last "
                      "enqueued NCCL work: 12, last completed NCCL work: 8.\n",
                      "0", "", 3, 9},
                     {"[rank3]:[E ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(a (b)) Rank 3] Received a dump "
                      "signal due to a collective "
                      "timeout from this local rank and we will try our best to dump the debug info. Last "
                      "enqueued NCCL work: 12, last "
                      "completed NCCL work: 8.This is\n",
                      "0", "a (b)", 3, -1}};
  for (const auto& expected : cases) {
    const TorchLine line = only(expected.text);
    EXPECT_EQ(line.remark, TorchRemark::kProgress);
    EXPECT_EQ(line.rank, 3);
    EXPECT_EQ(line.group, expected.group);
    EXPECT_EQ(line.description, expected.description);
    EXPECT_EQ(line.group_rank, expected.group_rank);
    EXPECT_EQ(line.seq, expected.seq);
    EXPECT_EQ(line.enqueued, 12);
    EXPECT_EQ(line.completed, 8);
    EXPECT_EQ(line.other_rank, expected.seq < 0 ? 3 : -1) << "whose time was up: its own";
  }
}

TEST(TorchLines, WhoseTimeWasUp) {
  const TorchLine line = only(
      "[rank5]:[E1120 19:22:40.1 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 5] Received "
      "a dump signal "
      "due to a collective timeout from  rank 2 and we will try our best. Last enqueued NCCL work: -1, last "
      "completed NCCL "
      "work: -1.\n");
  EXPECT_EQ(line.other_rank, 2);
  EXPECT_EQ(line.enqueued, -1);
}

TEST(TorchLines, TheRestOfTheCatalogue) {
  struct {
    TorchRemark remark;
    const char* text;
  } const cases[] = {
      {TorchRemark::kError,
       "[Rank 1] Collective WorkNCCL(SeqNum=3, OpType=ALLREDUCE, Timeout(ms)=1) raised the following "
       "async exception: NCCL error: remote process exited or there was a network error"},
      {TorchRemark::kTakenDown,
       "[PG 0 Rank 1] Some NCCL operations have failed or timed out. Due to the asynchronous nature"},
      {TorchRemark::kTakenDown,
       "[rank1]:[E ProcessGroupNCCL.cpp:1] To avoid data inconsistency, we are taking the entire process "
       "down."},
      {TorchRemark::kTakenDown,
       "[E ProcessGroupNCCL.cpp:1] [PG 0 Rank 1] Process group watchdog thread terminated with exception: "
       "[Rank 1] Watchdog"},
      {TorchRemark::kError,
       "[Rank 1] NCCL watchdog thread terminated with exception: CUDA error: an illegal memory access"},
      {TorchRemark::kSignal,
       "[PG ID 0 PG GUID 0 Rank 1] (ProcessGroupNCCL.cpp) Observed flight recorder dump signal from "
       "another rank via TCPStore."},
      {TorchRemark::kSignal, "[PG ID 0 PG GUID 0 Rank 1] remote error detected from rank: 3"},
      {TorchRemark::kWatchdogStuck,
       "[PG 0 Rank 1] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making "
       "progress in monitoring enqueued collectives."},
      {TorchRemark::kWatchdogStuck,
       "[Rank 1] NCCL: Heartbeat monitor timed out! Process will be terminated after dumping"},
      {TorchRemark::kLockHeld,
       "[rank1] ProcessGroupNCCL.cpp] Could not acquire GIL within 300 ms on exit, possible GIL"},
      {TorchRemark::kTakenDown,
       "[PG 0 Rank 1] NCCL Terminating the process after attempting to dump debug info, due to "
       "collective timeout or exception."},
      {TorchRemark::kGroup,
       "[PG ID 1 PG GUID 5(tp) Rank 1] ProcessGroupNCCL initialization options: size: 4, global rank: "
       "1, TIMEOUT(ms): 600000, USE_HIGH_PRIORITY_STREAM: 0"},
      {TorchRemark::kMismatch,
       "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running "
       "collective: CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE, TensorShape=[1]), but "
       "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=4, OpType=BROADCAST)."},
      {TorchRemark::kTimeout, "[TC][rank=1][name=world] Operation timed out after 12000 ms"},
      {TorchRemark::kError, "nccl hit async error on rank 1: unhandled system error"},
      {TorchRemark::kPointToPoint,
       "[rank1]:[W1120 ProcessGroupNCCL.cpp:4051] Warning: [PG ID 0 PG GUID 0(default_pg) Rank 1] "
       "An unbatched P2P op (send/recv) was called on this ProcessGroup with size 8."}};
  for (const auto& expected : cases) {
    const TorchLine line = only(std::string(expected.text) + "\n");
    EXPECT_EQ(line.remark, expected.remark) << expected.text;
    EXPECT_EQ(line.rank, 1) << expected.text;
  }
  const TorchLine mismatch = only(std::string(cases[12].text) + "\n");
  EXPECT_EQ(mismatch.other_rank, 0);
  EXPECT_EQ(mismatch.op, "ALLREDUCE");
  EXPECT_EQ(mismatch.text, "BROADCAST");
  EXPECT_EQ(mismatch.seq, 4);
  EXPECT_EQ(mismatch.other_seq, 4);
}

TEST(TorchLines, AMismatchOfAnyReleaseIsRead) {
  const std::string head =
      "RuntimeError: Detected mismatch between collectives on ranks. Rank 7 is running collective: ";
  const std::string other = ", but Rank 2 is running collective: CollectiveFingerPrint(";
  const TorchLine barrier =
      only(head + "CollectiveFingerPrint(SequenceNumber=12OpType=BARRIER)" + other +
           "SequenceNumber=9OpType=GATHER).Collectives differ in the following aspects: x\n");
  EXPECT_EQ(barrier.op, "BARRIER");
  EXPECT_EQ(barrier.seq, 12);
  EXPECT_EQ(barrier.other_seq, 9);
  EXPECT_EQ(barrier.text, "GATHER");
  const TorchLine old = only(head + "CollectiveFingerPrint(OpType=BARRIER)" + other + "OpType=ALLREDUCE).\n");
  EXPECT_EQ(old.op, "BARRIER");
  EXPECT_EQ(old.seq, -1);
  EXPECT_EQ(old.text, "ALLREDUCE");
  const TorchLine broken = only(head + "\nCollectiveFingerPrint(OpType=ALLREDUCE,\nTensorShape=[2])\n\n" +
                                other.substr(2) + "\nOpType=REDUCE, TensorShape=[2])\n");
  EXPECT_EQ(broken.rank, 7);
  EXPECT_EQ(broken.op, "ALLREDUCE");
  EXPECT_EQ(broken.other_rank, 2);
  EXPECT_EQ(broken.text, "REDUCE");
  EXPECT_TRUE(parse(head + "\nCollectiveFingerPrint(\n[rank3]: step 7\n").empty())
      << "nothing says what was called";
}

TEST(TorchLines, ADesyncReport) {
  const auto lines =
      parse("[rank0]:[E1118 ProcessGroupNCCL.cpp:1] [Rank 0] " + kTimedOut +
            "\n\t - [0] Timeout at collective: ALLREDUCE, #9\n"
            "\t - To our best knowledge, ranks [6, 7] are the lagging ranks that caused this timeout. They "
            "never joined any "
            "collectives\n"
            "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
            "\t   - [0, 1] joined but didn't finish collective #9 (count from 1)\n"
            "\t     [5] finished collective #8, but didn't join collective #9 (count from 1)\n"
            "\t - Snapshot of ranks' latest states:\n"
            "\t   #9 started ranks:\n"
            "\t     [0, 1] started ALLREDUCE\n"
            "\t   #8 finished ranks:\n"
            "\t     [5] finished ALLREDUCE\n"
            "[rank0]: [5] finished nothing that counts\n");
  ASSERT_EQ(lines.size(), 6u);  // its first line says again what timed out
  EXPECT_EQ(lines[1].remark, TorchRemark::kNeverJoined);
  EXPECT_EQ(lines[1].ranks, (std::vector<int32_t>{6, 7}));
  EXPECT_EQ(lines[2].remark, TorchRemark::kNotFinished);
  EXPECT_EQ(lines[2].ranks, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(lines[3].remark, TorchRemark::kNotJoined);
  EXPECT_EQ(lines[3].seq, 9);
  EXPECT_EQ(lines[3].ranks, std::vector<int32_t>{5});
  EXPECT_EQ(lines[4].remark, TorchRemark::kStarted);
  EXPECT_EQ(lines[4].op, "ALLREDUCE");
  EXPECT_EQ(lines[5].remark, TorchRemark::kFinished);
  EXPECT_EQ(lines[5].seq, 8);
  EXPECT_EQ(lines[5].rank, 0);
  const TorchLine alone = only("\t - [3] Timeout at collective: ALLREDUCE, #9\n");
  EXPECT_EQ(alone.remark, TorchRemark::kTimeout);
  EXPECT_EQ(alone.rank, 3);
  EXPECT_EQ(alone.seq, 9);
}

TEST(TorchLines, WhereTheOperationWasCalled) {
  const TorchLine line = only(
      "[rank0]:[E1120 19:22:39.8 ProcessGroupNCCL.cpp:733] Stack trace of the failed collective: \n"
      "#0 all_reduce from /opt/lib/torch/distributed/distributed_c10d.py:3068\n"
      "#1 step from /srv/train/train.py:95\n"
      "#2 main from /srv/train/train.py:106\n");
  EXPECT_EQ(line.remark, TorchRemark::kCalledAt);
  EXPECT_EQ(line.rank, 0);
  EXPECT_EQ(line.text, "step, /srv/train/train.py:95");
}

TEST(TorchLines, LaunchersSayWhoEnded) {
  const auto torchrun = parse(
      "Root Cause (first observed failure):\n[0]:\n  time      : 2031-02-03_04:05:06\n  host      : n1\n"
      "  rank      : 5 (local_rank: 1)\n  exitcode  : -9 (pid: 4856)\n  error_file: <N/A>\n");
  ASSERT_EQ(torchrun.size(), 1u);
  EXPECT_EQ(torchrun[0].remark, TorchRemark::kExit);
  EXPECT_EQ(torchrun[0].rank, 5);
  EXPECT_EQ(torchrun[0].exit_code, -9);
  EXPECT_EQ(only("srun: error: n1: task 5: Out Of Memory\n").rank, 5);
  EXPECT_EQ(only("mpirun noticed that process rank 5 with PID 0 on node n1 exited on signal 11 (Segmentation "
                 "fault).\n")
                .exit_code,
            -11);
  EXPECT_TRUE(
      parse("  exitcode  : -9 (pid: 4856)\nsrun: error: n1: task 5: Exited with exit code 1\n").empty());
}

TEST(TorchLines, AReportOfALauncherSaysWhen) {
  const std::string failed = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n";
  const auto entry = [](int second, int rank, const std::string& code) {
    return "[0]:\n  time      : 2031-02-03_04:05:0" + std::to_string(second) +
           "\n  host      : n1\n  rank      : " + std::to_string(rank) + " (local_rank: 1)\n" + code;
  };
  const std::string code = "  exitcode  : 1 (pid: 4856)\n", first = "Root Cause (first observed failure):\n";
  const auto whole = parse(failed + entry(9, 4, code) + first + entry(1, 5, code));
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].ended_s - whole[1].ended_s, 8);
  EXPECT_FALSE(whole[0].is_first_end);
  EXPECT_TRUE(whole[1].is_first_end);
  // Pasted up to the rank: that it ended first is said, how is not.
  const auto cut = parse(failed + first + entry(1, 5, ""));
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].rank, 5);
  EXPECT_EQ(cut[0].exit_code, TorchLine::kNoCode);
  EXPECT_TRUE(parse(failed + entry(1, 5, "")).empty());
}

TEST(TorchLines, ALineThatIsBrokenBetweenWordsIsOne) {
  const std::string begin = "n4 [stderr] [rank14]:[E909 09:55:29.3 ProcessGroupNCCL.cpp:607] [Rank 14] ";
  const std::string caught = "Watchdog caught collective operation timeout: ";
  const auto lines = parse(begin + caught +
                           "\nWorkNCCL(SeqNum=2070, OpType=REDUCE, NumelIn=1, NumelOut=1, "
                           "Timeout(ms)=600000) ran for 600034 milliseconds before timing out.\n");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back().remark, TorchRemark::kTimeout);
  EXPECT_EQ(lines.back().rank, 14);
  EXPECT_EQ(lines.back().seq, 2070);
  const auto progress = parse(
      "[rank3]:[E909 ProcessGroupNCCL.cpp:1664] [PG 0 (default_pg) Rank 3] Exception (either an error or timeout) "
      "detected\nby watchdog at work: 70, last enqueued NCCL work: 70, last completed NCCL work: 69.\n");
  ASSERT_EQ(progress.size(), 1u);
  EXPECT_EQ(progress[0].rank, 3);
  EXPECT_EQ(progress[0].completed, 69);
  // What never comes is not made up, and the next line of another rank is its own.
  const auto cut = parse(
      begin + caught + "\n[rank2]:[E909 ProcessGroupNCCL.cpp:9] [Rank 2] taking the entire process down.\n");
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].remark, TorchRemark::kSignal);
  EXPECT_EQ(cut[1].rank, 2);
}

TEST(TorchLines, AFileOfOneRankNamesIt) {
  const auto lines =
      parse("[rank4]:[W ProcessGroupNCCL.cpp:1] An unbatched P2P op was called\n[E ProcessGroupNCCL.cpp:1] " +
            kTimedOut + "\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].rank, 4);
  const auto mixed = parse(
      "[rank4]:[W ProcessGroupNCCL.cpp:1] An unbatched P2P op was called\n"
      "[rank5]:[W ProcessGroupNCCL.cpp:1] An unbatched P2P op was called\n[E ProcessGroupNCCL.cpp:1] " +
      kTimedOut + "\n");
  ASSERT_EQ(mixed.size(), 3u);
  EXPECT_EQ(mixed[2].rank, -1);
}

TEST(TorchLines, WhoSpokeLastInOneFileSaysNothingOfTheNext) {
  LogParser parser;
  parser.begin_file("a.log");
  parser.feed(
      "[rank4]:[E1118 ProcessGroupNCCL.cpp:1] [Rank 4] " + kTimedOut +
      "\n  rank      : 5 (local_rank: 1)\n\t - Snapshot of ranks' latest states:\n\t   #9 started ranks:\n");
  parser.end_file();
  parser.begin_file("b.log");
  parser.feed(
      "\t     [0, 1] started ALLREDUCE\n  exitcode  : -9 (pid: 4856)\n"
      "\t   - [0, 1] joined but didn't finish collective #9 (count from 1)\n");
  parser.end_file();
  const std::vector<TorchLine> lines = parser.take().torch;
  ASSERT_EQ(lines.size(), 2u) << "neither the snapshot nor the launcher's report goes on in another file";
  EXPECT_EQ(lines[0].rank, 4);
  EXPECT_EQ(lines[1].remark, TorchRemark::kNotFinished);
  EXPECT_EQ(lines[1].rank, -1);
}

TEST(TorchLines, AreKeptOnceAndBounded) {
  std::string text;
  for (int i = 0; i < 3; ++i) text += "[rank3]:[E ProcessGroupNCCL.cpp:1] [Rank 3] " + kTimedOut + "\n";
  EXPECT_EQ(parse(text).size(), 1u);
  LogParser parser;
  parser.begin_file("a.log");
  for (size_t i = 0; i < LogModel::kTorchLinesMost + 10; ++i)
    parser.feed("[rank" + std::to_string(i) + "]: ProcessGroupNCCL.cpp] [Rank 3] " + kTimedOut + "\n");
  parser.end_file();
  const LogModel model = parser.take();
  EXPECT_EQ(model.torch.size(), LogModel::kTorchLinesMost);
  EXPECT_EQ(model.coverage.beyond, 10u);
}

// Of what ranks announce before each call, the highest number of each.
TEST(TorchLines, OfAnnouncementsTheLastCounts) {
  std::string text;
  for (const auto& [rank, number] : {std::pair(0, 7), {1, 6}, {0, 8}, {0, 3}, {1, 6}})
    text += "[I ProcessGroupWrapper.cpp:562] [Rank " + std::to_string(rank) +
            "] Running collective: CollectiveFingerPrint(SequenceNumber=" + std::to_string(number) +
            ", OpType=ALLREDUCE, TensorShape=[4])\n";
  text += "[Rank 99999999999] Running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=BARRIER,)\n";
  const auto lines = parse(text);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].remark, TorchRemark::kAnnounced);
  EXPECT_EQ(lines[0].rank, 0);
  EXPECT_EQ(lines[0].seq, 8);
  EXPECT_EQ(lines[0].op, "ALLREDUCE");
  EXPECT_EQ(lines[0].first.line, 3u);
  EXPECT_EQ(lines[1].seq, 6);
  EXPECT_EQ(lines[1].first.line, 2u);
}

// Where a time limit is the reason, the rank followed; else what NCCL met is reported.
TEST(TorchLines, ACommunicatorThatWasAbortedTellsWhy) {
  const std::string begin =
      "RuntimeError: NCCL communicator was aborted on rank 2.  Original reason for failure was: ";
  const auto late = parse(begin + "watchdog callback timed out\n");
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].remark, TorchRemark::kTakenDown);
  EXPECT_EQ(late[0].rank, 2);
  EXPECT_EQ(parse("[rank7]: " + begin + "watchdog callback timed out\n").at(0).rank, 7);
  EXPECT_TRUE(parse(begin + "NCCL error: unhandled system error\n").empty());
  EXPECT_EQ(only("RuntimeError: NCCL communicator was aborted on rank 5.\n").rank, 5);
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
