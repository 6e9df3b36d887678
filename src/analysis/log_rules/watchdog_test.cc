// SPDX-License-Identifier: Apache-2.0
#include "analysis/log_rules/watchdog.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/log_rules/log_rules.h"
#include "readers/nccl_log/log_parser.h"

namespace lockstep::analysis::log_rules {
namespace {

std::vector<Finding> findings_of(const std::string& text) {
  readers::nccl_log::LogParser parser;
  parser.begin_file("job.log");
  parser.feed(text);
  parser.end_file();
  return judge(parser.take());
}

std::vector<std::string> ids(const std::vector<Finding>& findings) {
  std::vector<std::string> list;
  for (const Finding& finding : findings) list.emplace_back(id_text(finding.id));
  return list;
}

struct Group {
  std::string name, description;
};
const Group kWorld = {"0", "default_pg"}, kTensor = {"3", "tp"}, kData = {"5", "dp"};

std::string head(int rank) {
  return "[rank" + std::to_string(rank) + "]:[E1118 20:32:23.955 ProcessGroupNCCL.cpp:629] ";
}
std::string of_group(int rank, const Group& group, int in_group) {
  return head(rank) + "[PG ID 7 PG GUID " + group.name + '(' + group.description + ") Rank " +
         std::to_string(in_group) + "] ";
}
std::string options(int rank, const Group& group, int in_group, int size) {
  return of_group(rank, group, in_group) +
         "ProcessGroupNCCL initialization options: size: " + std::to_string(size) +
         ", global rank: " + std::to_string(rank) + ", TIMEOUT(ms): 600000\n";
}
std::string status(int enqueued, int completed) {
  return "last enqueued work: " + std::to_string(enqueued) +
         ", last completed work: " + std::to_string(completed) + "\n";
}
// Its time was up, and how far it is.
std::string gave_up(int rank, const Group& group, int in_group, int seq, int enqueued,
                    const std::string& op = "ALLREDUCE", int elements = 26) {
  const std::string numel = std::to_string(elements);
  return head(rank) +
         "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + std::to_string(seq) +
         ", OpType=" + op + ", NumelIn=" + numel + ", NumelOut=" + numel +
         ", Timeout(ms)=600000) ran for 600042 milliseconds before timing out.\n" +
         of_group(rank, group, in_group) +
         " failure detected by watchdog at work sequence id: " + std::to_string(seq) +
         " PG status: " + status(enqueued, seq - 1);
}
// Another's time was up.
std::string reported(int rank, int enqueued, int completed) {
  return of_group(rank, kWorld, rank) +
         "Received a dump signal due to a collective timeout from  rank 0 and we will try our best. Last "
         "enqueued NCCL work: " +
         std::to_string(enqueued) + ", last completed NCCL work: " + std::to_string(completed) + ".\n";
}

TEST(Watchdog, NamesWhoIsBehindAndTheOperation) {
  const auto findings =
      findings_of(gave_up(0, kWorld, 0, 9, 9) + reported(1, 8, 8) + gave_up(2, kWorld, 2, 9, 11));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"never-joined.watchdog"});
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.statement,
            "rank 1 never called operation 8 of default_pg (AllReduce); 2 ranks waited for it for 10.0 "
            "min, until PyTorch's watchdog gave up");
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{1});
  EXPECT_EQ(finding.comm, "default_pg");
  EXPECT_EQ(finding.func, "AllReduce");
  EXPECT_EQ(finding.op_index, 8u);
  ASSERT_TRUE(finding.effect);
  EXPECT_EQ(finding.effect->value, 600042e6);
  EXPECT_EQ(finding.evidence[0].substr(0, 10), "job.log:3:");
}

TEST(Watchdog, OfAGroupItNamesRanksOfTheJob) {
  const auto findings =
      findings_of(gave_up(6, kTensor, 0, 4, 4) + of_group(7, kTensor, 1) + "PG status: " + status(3, 3));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{7});
  EXPECT_EQ(findings[0].comm, "tp (group 3)");
  EXPECT_EQ(findings[0].op_index, 3u);
}

TEST(Watchdog, OtherCallsAreHeldAgainstEachOther) {
  auto findings = findings_of(gave_up(0, kWorld, 0, 9, 9) + gave_up(1, kWorld, 1, 9, 9) +
                              gave_up(2, kWorld, 2, 9, 9, "_ALLGATHER_BASE"));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"joined-other-op.watchdog"});
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
  EXPECT_EQ(findings[0].op_index, 8u);
  EXPECT_EQ(findings[0].comm, "default_pg");
  findings = findings_of(gave_up(0, kWorld, 0, 9, 9) + gave_up(1, kWorld, 1, 9, 9, "ALLREDUCE", 27));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"joined-other-op.watchdog"});
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{0, 1}));  // either may be wrong
  EXPECT_EQ(findings[0].func, "AllReduce");
}

TEST(Watchdog, SizesThatMayDifferAreNotHeldAgainstAnyone) {
  const auto findings = findings_of(gave_up(0, kWorld, 0, 9, 9, "ALLTOALL_BASE", 5) +
                                    gave_up(1, kWorld, 1, 9, 9, "ALLTOALL_BASE", 6));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
}

TEST(Watchdog, WhoWaitsElsewhereIsNotTheCause) {
  // 3 is behind in dp because it waits in tp for 2.
  const auto findings = findings_of(gave_up(1, kData, 0, 5, 5) + of_group(3, kData, 1) + status(4, 4) +
                                    gave_up(3, kTensor, 1, 8, 8) + of_group(2, kTensor, 0) + status(7, 7));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"never-joined.watchdog"});
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
  EXPECT_EQ(findings[0].comm, "tp (group 3)");
}

TEST(Watchdog, GroupsThatHoldEachOtherAreADeadlock) {
  const auto findings = findings_of(gave_up(0, kData, 0, 5, 5) + of_group(1, kData, 1) + status(4, 4) +
                                    gave_up(1, kTensor, 1, 8, 8) + of_group(0, kTensor, 0) + status(7, 7));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"cross-comm-deadlock.watchdog"});
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{0, 1}));
  EXPECT_NE(findings[0].statement.find("tp (group 3)"), std::string::npos) << findings[0].statement;
  EXPECT_NE(findings[0].statement.find("dp (group 5)"), std::string::npos) << findings[0].statement;
}

TEST(Watchdog, AllThatCalledItAreStuckOnlyWhenAllAreKnown) {
  const std::string both = gave_up(0, kWorld, 0, 9, 9) + gave_up(1, kWorld, 1, 9, 9);
  EXPECT_EQ(ids(findings_of(both)), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_EQ(ids(findings_of(options(0, kWorld, 0, 2) + both)),
            std::vector<std::string>{"stuck-in-gpu.watchdog"});
  const auto findings = findings_of(options(0, kWorld, 0, 3) + both);
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
  EXPECT_EQ(findings[0].needed_evidence, "the logs of rank 2, or dumps of PyTorch's Flight Recorder");
}

// Every member of an all-gather gives one part, so its sizes say how many there are.
TEST(Watchdog, SizesOfPartsTellHowManyRanksThereAre) {
  const auto gathered = [](int rank, const Group& group, int parts) {
    std::string text = gave_up(rank, group, rank, 9, 9, "_ALLGATHER_BASE", 26);
    const std::string out = "NumelOut=26,";
    return text.replace(text.find(out), out.size(), "NumelOut=" + std::to_string(parts * 26) + ",");
  };
  const std::string both = gathered(0, kWorld, 2) + gathered(1, kWorld, 2);
  EXPECT_EQ(ids(findings_of(both)), std::vector<std::string>{"stuck-in-gpu.watchdog"});
  auto findings = findings_of(gathered(0, kWorld, 4) + gathered(1, kWorld, 4));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{2, 3}));
  findings = findings_of(gathered(0, kData, 4) + gathered(1, kData, 4));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_TRUE(findings[0].ranks.empty());
  EXPECT_NE(findings[0].statement.find("the group has 4 ranks, and these logs have lines of 2"),
            std::string::npos)
      << findings[0].statement;
  // An all-reduce gives and gets alike.
  EXPECT_EQ(ids(findings_of(gave_up(0, kWorld, 0, 9, 9) + gave_up(1, kWorld, 1, 9, 9))),
            std::vector<std::string>{"evidence-missing.watchdog"});
}

// It would have ended on neither: what they count is not the same.
TEST(Watchdog, WhoEndedItAndWaitsInALaterOneMayCountOtherCalls) {
  const std::string both = options(0, kWorld, 0, 2) + gave_up(0, kWorld, 0, 9, 14);
  const auto findings = findings_of(both + gave_up(1, kWorld, 1, 13, 15, "_ALLGATHER_BASE"));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_NE(findings[0].statement.find("it ended where rank 1 waits in operation 12 (AllGather)"),
            std::string::npos)
      << findings[0].statement;
  // Without a wait of its own it only went on.
  EXPECT_EQ(ids(findings_of(both + of_group(1, kWorld, 1) + status(9, 9))),
            std::vector<std::string>{"stuck-in-gpu.watchdog"});
}

TEST(Watchdog, OfAnUnnamedGroupDifferentCallsOfOneNumberAreTold) {
  const auto line = [](int rank, const std::string& op) {
    return "[E ProcessGroupNCCL.cpp:737] [Rank " + std::to_string(rank) +
           "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3742, OpType=" + op +
           ", Timeout(ms)=1800000) ran for 1801750 milliseconds before timing out.\n";
  };
  const auto findings =
      findings_of(line(0, "REDUCE") + line(1, "_ALLGATHER_BASE") + line(5, "_ALLGATHER_BASE"));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_NE(findings[0].statement.find("(ranks 1 and 5: AllGather, rank 0: Reduce)"), std::string::npos)
      << findings[0].statement;
  EXPECT_EQ(findings_of(line(0, "REDUCE") + line(1, "REDUCE"))[0].statement.find("different"),
            std::string::npos);
}

TEST(Watchdog, WhoseOwnTimeWasUpWaits) {
  const auto dumps = [](const std::string& whose) {
    return of_group(1, kWorld, 1) + "Received a dump signal due to a collective timeout from " + whose +
           " and we will try our best. Last enqueued NCCL work: 55, last completed NCCL work: 12.\n";
  };
  const auto findings = findings_of(dumps("this local rank"));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_NE(findings[0].statement.find("rank 1 waited for operation 12 of default_pg"), std::string::npos)
      << findings[0].statement;
  EXPECT_TRUE(findings_of(dumps("that")).empty());
}

TEST(Watchdog, AnOperationBrokenWithinAWordIsPutTogether) {
  const std::string begin =
      of_group(1, kWorld, 1) +
      "Process group watchdog thread terminated with exception: [Rank 1] Watchdog caught "
      "collective operation timeout: WorkNCCL(";
  const std::string end =
      ", NumelIn=2, NumelOut=2, Timeout(ms)=600000) ran for 600003 milliseconds before.\n";
  for (const std::string broken : {"S\neqNum=9, OpType=ALLREDUCE", "SeqNum=9,\nOpType=ALLREDUCE"}) {
    const auto findings = findings_of(begin + broken + end);
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(id_text(findings[0].id), "evidence-missing.watchdog");
    EXPECT_EQ(findings[0].op_index, 8u) << broken;
    EXPECT_EQ(findings[0].func, "AllReduce") << broken;
  }
}

TEST(Watchdog, SendsAndReceivesHideWhoIsBehind) {
  const std::string transfer =
      head(1) +
      "Warning: [PG ID 0 PG GUID 0(default_pg) Rank 1] An unbatched P2P op (send/recv) was called\n";
  auto findings = findings_of(transfer + gave_up(0, kWorld, 0, 9, 9) + reported(1, 8, 8));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  findings = findings_of(gave_up(0, kWorld, 0, 2, 2, "RECV"));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_NE(findings[0].statement.find("do not name the other end"), std::string::npos)
      << findings[0].statement;
}

TEST(Watchdog, ADesyncReportIsNotMixed) {
  const std::string transfer =
      head(1) +
      "Warning: [PG ID 0 PG GUID 0(default_pg) Rank 1] An unbatched P2P op (send/recv) was called\n";
  const auto findings =
      findings_of(transfer + gave_up(0, kWorld, 0, 9, 9) +
                  "\t     [1] finished collective #8, but didn't join collective #9 (count from 1)\n");
  ASSERT_EQ(ids(findings), std::vector<std::string>{"never-joined.watchdog"});
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{1});
}

TEST(Watchdog, AttemptsOfAJobAreNotMixed) {
  const auto findings = findings_of(options(0, kWorld, 0, 2) + gave_up(0, kWorld, 0, 9, 9) +
                                    reported(1, 8, 8) + gave_up(0, kWorld, 0, 20, 20) + reported(1, 19, 19));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_NE(findings[0].statement.find("several attempts"), std::string::npos) << findings[0].statement;
}

TEST(Watchdog, GroupsOfOneNameAreNotMixed) {
  // Ranks 0 and 2 both are the first of a group 3: there are two of that name.
  const auto findings = findings_of(gave_up(0, kTensor, 0, 9, 9) + of_group(2, kTensor, 0) + status(8, 8));
  EXPECT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
}

TEST(Watchdog, TheDesyncReportNamesThem) {
  const auto findings =
      findings_of(gave_up(0, kWorld, 0, 9, 9) +
                  "\t - [0] Timeout at collective: ALLREDUCE, #9\n"
                  "\t   - [0, 1] joined but didn't finish collective #9 (count from 1)\n"
                  "\t     [5] finished collective #8, but didn't join collective #9 (count from 1)\n");
  ASSERT_EQ(ids(findings), std::vector<std::string>{"never-joined.watchdog"});
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{5});
  EXPECT_EQ(findings[0].op_index, 8u);
  const auto other = findings_of(gave_up(0, kWorld, 0, 9, 9) +
                                 "\t - Snapshot of ranks' latest states:\n\t   #9 started ranks:\n"
                                 "\t     [0, 1] started ALLREDUCE\n\t     [4] started BROADCAST\n");
  ASSERT_EQ(ids(other), std::vector<std::string>{"joined-other-op.watchdog"});
  EXPECT_EQ(other[0].ranks, std::vector<int32_t>{4});
}

TEST(Watchdog, WhoDiedIsTheCause) {
  const std::string report =
      "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 4856)\n"
      "  rank      : 0 (local_rank: 0)\n  exitcode  : -6 (pid: 4855)\n";
  auto findings = findings_of(gave_up(0, kWorld, 0, 9, 9) + report);
  ASSERT_EQ(ids(findings), std::vector<std::string>{"rank-dead.launcher"});
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{1});
  EXPECT_EQ(findings[0].op_index, 8u);
  EXPECT_EQ(findings[0].comm, "default_pg");
  // What the launcher stops after that is not.
  findings = findings_of(
      "  rank      : 1 (local_rank: 1)\n  exitcode  : -15 (pid: 4856)\n[rank0]: x NCCL y\nNCCL version "
      "2.28.9\n");
  EXPECT_TRUE(findings.empty());
}

// A launcher ends the others, some of them by force, after the first.
TEST(Watchdog, WhoEndedLaterIsNotTheCause) {
  const auto entry = [](int second, int rank) {
    return "[0]:\n  time      : 2031-02-03_04:05:0" + std::to_string(second) +
           "\n  rank      : " + std::to_string(rank) + " (local_rank: 1)\n  exitcode  : 1 (pid: 4856)\n";
  };
  const std::string failed = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n";
  const auto findings = findings_of(failed + entry(9, 4) + entry(8, 0) +
                                    "Root Cause (first observed failure):\n" + entry(1, 3));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"rank-dead.launcher"});
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{3});
}

// Each host's launcher reports what it saw first there.
TEST(Watchdog, WhoExitsAfterAKillOnAnotherHostFollowsIt) {
  const auto ranks_of = [](const std::string& killed_at, const std::string& exited_at, int code) {
    readers::nccl_log::LogParser parser;
    const auto report = [&](const std::string& second, int rank, int exit_code) {
      parser.begin_file("host" + std::to_string(rank) + ".log");
      parser.feed(
          "ChildFailedError:\nRoot Cause (first observed failure):\n[0]:\n  time      : 2031-02-03_04:05:" +
          second + "\n  rank      : " + std::to_string(rank) +
          " (local_rank: 0)\n  exitcode  : " + std::to_string(exit_code) + " (pid: 92)\n");
      parser.end_file();
    };
    report(killed_at, 3, code);
    report(exited_at, 8, 1);
    return judge(parser.take()).at(0).ranks;
  };
  EXPECT_EQ(ranks_of("01", "09", -9), std::vector<int32_t>{3});
  EXPECT_EQ(ranks_of("01", "09", 137), std::vector<int32_t>{3});
  EXPECT_EQ(ranks_of("01", "03", -9), (std::vector<int32_t>{3, 8})) << "within what clocks may differ by";
  EXPECT_EQ(ranks_of("09", "01", -9), (std::vector<int32_t>{3, 8})) << "it was not killed before";
  EXPECT_EQ(ranks_of("01", "09", 1), (std::vector<int32_t>{3, 8})) << "either may be the first";
  EXPECT_EQ(ranks_of("01", "09", -6), (std::vector<int32_t>{3, 8}));
}

// Who exits by itself in the same moment lost that one; who was killed then may be the cause as well.
TEST(Watchdog, WhoExitsBesideTheFirstFollowsIt) {
  const auto report = [](int code) {
    return "ChildFailedError:\n[1]:\n  time      : 2031-02-03_04:05:01\n  rank      : 3 (local_rank: 3)\n"
           "  exitcode  : " +
           std::to_string(code) +
           " (pid: 92)\n[2]:\n  time      : 2031-02-03_04:05:32\n  rank      : 0 (local_rank: 0)\n"
           "  exitcode  : -9 (pid: 89)\n  error_file: <N/A>\n"
           "  traceback : Signal 9 (SIGKILL) received by PID 89\n"
           "Root Cause (first observed failure):\n[0]:\n  time      : 2031-02-03_04:05:01\n"
           "  rank      : 1 (local_rank: 1)\n";
  };
  auto findings = findings_of(report(1));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"rank-dead.launcher"});
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{1});
  findings = findings_of(report(-11));
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{1, 3}));
}

TEST(Watchdog, WhoWaitedIsSaidWithoutANumber) {
  const auto findings = findings_of(
      "  what():  [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, "
      "Timeout(ms)=1800000) ran for 1801256 milliseconds before timing out.\n");
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_NE(findings[0].statement.find("rank 5 waited for Broadcast"), std::string::npos);
}

TEST(Watchdog, OnlyThoseWhoWereToldKnowNothing) {
  const auto findings = findings_of(reported(5, 8, 8));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{0});
}

// -1: it had completed nothing yet, and which operation stands still is not known from that.
TEST(Watchdog, WhatIsCompletedMayBeUnknown) {
  const auto known = findings_of(options(0, kWorld, 0, 2) + reported(0, 9, 8) + reported(1, 8, 8));
  ASSERT_EQ(ids(known), std::vector<std::string>{"never-joined.watchdog"});
  EXPECT_EQ(known[0].ranks, std::vector<int32_t>{1});
  EXPECT_EQ(known[0].op_index, 8u);
  const auto unknown = findings_of(options(0, kWorld, 0, 2) + reported(0, 9, -1) + reported(1, 8, -1));
  EXPECT_EQ(ids(unknown), std::vector<std::string>{"evidence-missing.watchdog"});
}

TEST(Watchdog, ConsequencesAreNotes) {
  const auto findings = findings_of(gave_up(0, kWorld, 0, 9, 9) + reported(1, 8, 8) + of_group(0, kWorld, 0) +
                                    "To avoid data inconsistency, we are taking the entire process down.\n");
  ASSERT_EQ(ids(findings), (std::vector<std::string>{"never-joined.watchdog", "aborted.watchdog"}));
  EXPECT_EQ(findings[1].severity, Severity::kNote);
  EXPECT_EQ(findings[1].ranks, std::vector<int32_t>{0});
}

// What timed out, without a group's line.
std::string timed_out(int rank, int seq, const std::string& op = "ALLREDUCE") {
  const std::string text = gave_up(rank, kWorld, rank, seq, seq, op);
  return text.substr(0, text.find('\n') + 1);
}

// One line of one rank proves what it waited for and for how long, and that others are to be asked: nobody is
// named.
TEST(Watchdog, OneLineOfOneRankIsExplained) {
  const auto findings = findings_of(timed_out(3, 9));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_EQ(
      findings[0].statement,
      "an operation did not end, and Lockstep cannot tell who held it up: rank 3 waited for operation 8 of an "
      "unnamed group (AllReduce of 26 elements) for 10.0 min, until PyTorch's watchdog gave up; these "
      "lines name neither the group nor its members");
  EXPECT_TRUE(findings[0].ranks.empty());
  EXPECT_EQ(findings[0].func, "AllReduce");
  EXPECT_EQ(findings[0].advice.substr(0, 37), "The rank that gave up had called it: ");
  EXPECT_FALSE(findings[0].needed_evidence.empty());
}

TEST(Watchdog, HowFarTheOneThatWaitsHasComeIsEvidence) {
  const auto findings = findings_of(gave_up(3, kTensor, 1, 9, 11));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_TRUE(findings[0].ranks.empty());
  EXPECT_NE(std::find(findings[0].evidence.begin(), findings[0].evidence.end(),
                      "rank 3 had called 11 operations of tp (group 3), of which 8 had ended"),
            findings[0].evidence.end());
}

TEST(Watchdog, AGroupsOwnLineOfAFailureOpensAStall) {
  const auto findings = findings_of(
      of_group(1, kWorld, 1) +
      "Exception (either an error or timeout) detected by watchdog at work: 32, last enqueued NCCL "
      "work: 32, last completed NCCL work: 31.\n" +
      reported(2, 31, 31));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(id_text(findings[0].id), "never-joined.watchdog");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
  EXPECT_EQ(findings[0].op_index, 31u);
}

TEST(Watchdog, ALineWithoutAGroupIsOfTheOnlyOneWithThatNumber) {
  const auto findings =
      findings_of(timed_out(2, 9) + gave_up(0, kWorld, 0, 9, 9) + gave_up(1, kWorld, 1, 9, 9));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_NE(findings[0].statement.find("ranks 0-2 waited for operation 8 of default_pg"), std::string::npos)
      << findings[0].statement;
}

TEST(Watchdog, AnotherOperationOfThatNumberIsOfAnotherGroup) {
  const auto findings = findings_of(timed_out(2, 9, "BROADCAST") + gave_up(0, kWorld, 0, 9, 9));
  EXPECT_EQ(ids(findings),
            (std::vector<std::string>{"evidence-missing.watchdog", "evidence-missing.watchdog"}));
  EXPECT_EQ(
      ids(findings_of(timed_out(2, 9) + gave_up(0, kTensor, 0, 9, 9) + gave_up(1, kData, 0, 9, 9))).size(),
      3u);
}

TEST(Watchdog, RanksFarApartAreSaidSoAndNotAskedFor) {
  const auto findings = findings_of(timed_out(0, 96117) + timed_out(7, 64088));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_NE(findings[0].statement.find(
                "ranks wait in different operations: rank 0 waits in operation 96116 (AllReduce)"),
            std::string::npos)
      << findings[0].statement;
  EXPECT_EQ(findings[0].needed_evidence.find("rank 0"), std::string::npos) << findings[0].needed_evidence;
}

TEST(Watchdog, WhoseTimeWasUpAccordingToOthersIsNotSilent) {
  const auto findings = findings_of(gave_up(3, kWorld, 3, 9, 9) + reported(1, 9, 8) + reported(2, 9, 8));
  ASSERT_EQ(ids(findings), std::vector<std::string>{"evidence-missing.watchdog"});
  EXPECT_EQ(findings[0].needed_evidence.find("rank 0"), std::string::npos) << findings[0].needed_evidence;
}

}  // namespace
}  // namespace lockstep::analysis::log_rules
