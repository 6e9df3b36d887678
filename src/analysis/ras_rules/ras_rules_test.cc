// SPDX-License-Identifier: Apache-2.0
#include "analysis/ras_rules/ras_rules.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "readers/ras/text_snapshot.h"
#include "tests/support/places.h"

namespace lockstep::analysis::ras_rules {
namespace {

using namespace readers::ras;

// Ranks of the job r are process 100 + r on one host, GPU r.
template <class Row = Rank>
Row place(int32_t rank, int32_t global) {
  Row row;
  row.rank = rank;
  row.host = "192.0.2.1";
  row.pid = 100 + global;
  row.cuda_device = row.nvml_device = global;
  return row;
}
Rank member(int32_t rank, uint64_t all_reduces, int32_t global = -1, uint64_t broadcasts = 0) {
  Rank row = place(rank, global < 0 ? rank : global);
  row.launched = {{"Broadcast", broadcasts}, {"AllReduce", all_reduces}};
  return row;
}
Comm world(uint64_t all_reduces, int32_t size = 8) {
  Comm comm{.hash = "0xabc", .size = size, .ranks = {}, .missing = {}};
  for (int32_t rank = 0; rank < size; ++rank) comm.ranks.push_back(member(rank, all_reduces));
  return comm;
}
Snapshot snapshot(std::vector<Comm> comms, const std::string& time = "2026-11-20 10:00:00") {
  Snapshot snapshot;
  snapshot.file = "ras.json";
  snapshot.nccl_version = "2.28.9";
  snapshot.time = time;
  snapshot.comms = std::move(comms);
  return snapshot;
}
std::vector<Finding> judge_all(std::vector<Snapshot> snapshots) { return judge({std::move(snapshots), {}}); }
Finding only(const std::vector<Finding>& findings) {
  EXPECT_EQ(findings.size(), 1u);
  for (size_t i = 1; i < findings.size(); ++i)
    ADD_FAILURE() << id_text(findings[i].id) << ": " << findings[i].statement;
  return findings.empty() ? Finding(FindingId{}) : findings[0];
}
MissingRank missing(int32_t rank, bool unresponsive, bool dead) {
  auto row = place<MissingRank>(rank, rank);
  row.unresponsive = unresponsive;
  row.considered_dead = dead;
  return row;
}

TEST(RasRules, OfAHealthyJobSayNothing) {
  EXPECT_TRUE(judge({}).empty());
  EXPECT_TRUE(judge_all({snapshot({})}).empty());
  EXPECT_TRUE(judge_all({snapshot({world(9)})}).empty());
}

TEST(RasRules, ARankBehindMayOnlyBeAsked) {
  Comm comm = world(9);
  comm.ranks[5].launched[1].second = 8;
  const Finding finding = only(judge_all({snapshot({comm})}));
  EXPECT_EQ(id_text(finding.id), "never-joined.snapshot");
  EXPECT_EQ(class_of(finding.id), FindingClass::kNeverJoined);
  EXPECT_EQ(finding.severity, Severity::kWarning) << "ranks of a running job are not asked at one instant";
  EXPECT_FALSE(finding.needed_evidence.empty());
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{5});
  EXPECT_EQ(finding.hosts, std::vector<std::string>{"192.0.2.1"});
  EXPECT_EQ(finding.func, "AllReduce");
  EXPECT_EQ(finding.op_index, 8u);
  EXPECT_EQ(
      finding.statement,
      "rank 5 has launched 8 operations of communicator 0xabc of 8 ranks, 7 other ranks have launched up "
      "to 9 (the difference is in AllReduce)");
  EXPECT_EQ(finding.evidence[0], "ranks 0-4, 6 and 7 launched 9 operations (AllReduce 9)");
}

TEST(RasRules, SayWhichProcessARankIs) {
  Comm comm = world(9);
  comm.ranks[5].launched[1].second = 8;
  comm.ranks[5].nvml_device = 3;
  const Finding finding = only(judge_all({snapshot({comm})}));
  ASSERT_EQ(finding.who.size(), 1u);
  EXPECT_EQ(finding.who[0].text(), "rank 5 (GPU 3 of 192.0.2.1, pid 105)");
  EXPECT_EQ(finding.advice.find("PID"), std::string::npos) << "the commands have it";
  comm.ranks[5].pid = -1;
  EXPECT_EQ(only(judge_all({snapshot({comm})})).who[0].pid, 0);
}

TEST(RasRules, ARankThatStandsStillBehindTheOthersIsBlamed) {
  Comm early = world(9), late = world(12);
  early.ranks[5].launched[1].second = late.ranks[5].launched[1].second = 8;
  const Finding finding = only(judge_all({snapshot({early}), snapshot({late}, "2026-11-20 10:00:07")}));
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_TRUE(finding.needed_evidence.empty());
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{5});
  // Of one second it proves nothing.
  EXPECT_EQ(only(judge_all({snapshot({early}), snapshot({late})})).severity, Severity::kWarning);
}

TEST(RasRules, ARankThatGoesOnIsNot) {
  Comm early = world(9), late = world(100);
  early.ranks[5].launched[1].second = 8;
  late.ranks[5].launched[1].second = 99;
  EXPECT_TRUE(judge_all({snapshot({early}), snapshot({late}, "2026-11-20 10:00:07")}).empty());
}

TEST(RasRules, ARankThatGoesOnHidesNoneThatStandsStill) {
  Comm early = world(9), late = world(12);
  early.ranks[5].launched[1].second = late.ranks[5].launched[1].second = 8;
  early.ranks[6].launched[1].second = 7;
  late.ranks[6].launched[1].second = 8;
  const Finding finding = only(judge_all({snapshot({early}), snapshot({late}, "2026-11-20 10:00:07")}));
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{5});
}

TEST(RasRules, ASnapshotWithoutACommunicatorHidesNoOlderOne) {
  Comm early = world(9), late = world(12);
  early.ranks[5].launched[1].second = late.ranks[5].launched[1].second = 8;
  const Finding finding = only(judge_all(
      {snapshot({early}), snapshot({late}, "2026-11-20 10:00:07"), snapshot({}, "2026-11-20 10:00:14")}));
  EXPECT_EQ(finding.severity, Severity::kCritical);
}

TEST(RasRules, AnotherJobsSnapshotHidesNothing) {
  Comm early = world(9), late = world(12), other = world(3);
  early.ranks[5].launched[1].second = late.ranks[5].launched[1].second = 8;
  other.hash = "0xother";
  for (Rank& rank : other.ranks) rank.pid += 1000;
  const Finding finding = only(judge_all({snapshot({early}), snapshot({late}, "2026-11-20 10:00:07"),
                                          snapshot({other}, "2026-11-20 10:30:00")}));
  EXPECT_EQ(id_text(finding.id), "never-joined.snapshot");
  EXPECT_TRUE(finding.needed_evidence.empty()) << "both snapshots of its job show it";
  EXPECT_EQ(finding.severity, Severity::kNote) << "it is not what is wrong now";
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{5});
  EXPECT_EQ(finding.evidence.back(), "the newest snapshot, of 2026-11-20 10:30:00, is of another job");
}

TEST(RasRules, TheNewestJobComesFirst) {
  Comm old = world(9), now = world(9);
  old.ranks.pop_back();
  old.missing = {missing(7, true, true)};
  for (Rank& rank : old.ranks) rank.host = "192.0.2.9";
  now.hash = "0xnow";
  for (Rank& rank : now.ranks) rank.pid += 1000;
  now.ranks.resize(6);
  now.ranks[5].launched[1].second = 8;
  const RasModel model{{snapshot({old}), snapshot({now}, "2026-11-21 10:00:00")}, {}};
  EXPECT_EQ(judge({{model.snapshots[0]}, {}})[0].severity, Severity::kCritical);
  const std::vector<Finding> findings = judge(model);
  ASSERT_GE(findings.size(), 2u);
  EXPECT_EQ(findings[0].comm, "0xnow");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_EQ(findings.back().comm, "0xabc");
  EXPECT_EQ(findings.back().severity, Severity::kNote);
  const std::map<int32_t, std::string> of_ranks = hosts(model);
  EXPECT_EQ(of_ranks.size(), 6u) << "rank 6 answered in the older job only";
  for (const auto& [rank, host] : of_ranks) EXPECT_EQ(host, "192.0.2.1") << rank;
  EXPECT_TRUE(hosts({}).empty());
}

TEST(RasRules, AJobThatMakesItsCommunicatorsAnewIsOne) {
  Comm early = world(9), late = world(1);
  early.ranks[5].launched[1].second = 8;
  late.hash = "0xnew";
  EXPECT_TRUE(judge_all({snapshot({early}), snapshot({late}, "2026-11-20 10:00:07")}).empty())
      << "its processes are the same, and go on";
}

TEST(RasRules, ThatOthersCalledIsAnotherThing) {
  Comm comm = world(9);
  comm.ranks[2] = member(2, 8, 2, 1);
  const Finding finding = only(judge_all({snapshot({comm})}));
  EXPECT_EQ(id_text(finding.id), "joined-other-op.snapshot");
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
  EXPECT_EQ(finding.evidence[1], "rank 2 launched 9 operations (Broadcast 1, AllReduce 8)");
}

// Either of two may be wrong, and so may each of several that differ from the others.
TEST(RasRules, OfOtherOperationsAllOddOnesAreNamed) {
  const auto judged = [](const std::vector<size_t>& broadcasters, int32_t size) {
    Comm comm = world(9, size);
    for (const size_t rank : broadcasters) {
      const auto number = static_cast<int32_t>(rank);
      comm.ranks[rank] = member(number, 8, number, 1);
    }
    return only(judge_all({snapshot({comm}), snapshot({comm}, "2026-11-20 10:00:07")}));
  };
  EXPECT_EQ(judged({1}, 2).ranks, (std::vector<int32_t>{0, 1}));
  const Finding halves = judged({4, 5, 6, 7}, 8);
  EXPECT_EQ(halves.ranks, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(halves.statement,
            "ranks 0-7 have launched as many operations of communicator 0xabc of 8 ranks each, but different "
            "ones: any of them may be wrong");
  Comm comm = world(9);
  comm.ranks[2] = member(2, 8, 2, 1);
  comm.ranks[6] = member(6, 7, 6, 2);
  const Finding two = only(judge_all({snapshot({comm})}));
  EXPECT_EQ(two.ranks, (std::vector<int32_t>{2, 6}));
  EXPECT_EQ(two.statement,
            "ranks 2 and 6 have launched as many operations as the 6 other ranks of communicator 0xabc of 8 "
            "ranks, but different ones");
}

TEST(RasRules, AFunctionThatIsNotListedWasNotLaunched) {
  Comm comm = world(9);
  comm.ranks[2].launched = {{"AllReduce", 9}};
  EXPECT_TRUE(judge_all({snapshot({comm})}).empty());
}

TEST(RasRules, NamesRanksOfTheJob) {
  Comm pair{.hash = "0x2", .size = 2, .ranks = {member(0, 5, 3), member(1, 4, 7)}, .missing = {}};
  EXPECT_EQ(only(judge_all({snapshot({pair, world(9)})})).ranks, std::vector<int32_t>{7});
  // Of a process that the largest communicator does not know nobody is named.
  pair.ranks[1].pid = 999;
  const Finding finding = only(judge_all({snapshot({pair, world(9)})}));
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_NE(finding.statement.find("rank 1 of communicator 0x2"), std::string::npos) << finding.statement;
}

TEST(RasRules, TellsTheDeadFromThoseWhoDoNotAnswer) {
  Comm comm = world(9);
  comm.ranks.erase(comm.ranks.begin() + 5, comm.ranks.begin() + 7);
  comm.missing = {missing(5, true, true), missing(6, true, false)};
  const auto findings = judge_all({snapshot({comm})});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(id_text(findings[0].id), "rank-dead.snapshot");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{5});
  EXPECT_EQ(findings[0].severity, Severity::kCritical);
  EXPECT_EQ(id_text(findings[1].id), "rank-unreachable.snapshot");
  EXPECT_EQ(findings[1].ranks, std::vector<int32_t>{6});
}

TEST(RasRules, OneRankInSeveralCommunicatorsIsOneFinding) {
  Comm comm = world(9), second = world(4), other = world(4);
  second.hash = "0xdef";
  other.hash = "0x777";
  comm.ranks[5].launched[1].second = second.ranks[5].launched[1].second = 3;
  other.ranks[1].launched[1].second = 3;
  const auto findings = judge_all({snapshot({comm, second, other})});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].comm, "0xabc");
  EXPECT_EQ(findings[0].evidence.back(), "the same in 1 more communicator");
  EXPECT_EQ(findings[1].ranks, std::vector<int32_t>{1});
}

TEST(RasRules, AnErrorIsOfWhoHadItFirst) {
  Comm comm = world(9);
  for (const size_t rank : {0u, 1u, 3u}) comm.ranks[rank].async_error = kRemoteError;
  comm.ranks[2].async_error = 1;
  const Finding finding = only(judge_all({snapshot({comm})}));
  EXPECT_EQ(id_text(finding.id), "aborted.error");
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
  EXPECT_EQ(finding.statement, "rank 2 reports an unhandled CUDA error in communicator 0xabc of 8 ranks");
  EXPECT_EQ(finding.evidence[0], "3 other ranks report an error of another process");
}

TEST(RasRules, ErrorsThatDifferAreAllTold) {
  Comm comm = world(9);
  comm.ranks[2].async_error = 1;
  comm.ranks[5].async_error = 4;
  EXPECT_EQ(only(judge_all({snapshot({comm})})).statement,
            "ranks 2 and 5 report an invalid argument or an unhandled CUDA error in communicator 0xabc of 8 "
            "ranks");
}

TEST(RasRules, AnUnfinishedInitNamesWhoIsMissing) {
  Comm comm = world(0, 4);
  comm.ranks.pop_back();
  for (Rank& rank : comm.ranks) rank.init_state = kInProgress;
  comm.missing = {missing(3, false, false)};
  const Finding finding = only(judge_all({snapshot({comm}), snapshot({comm}, "2026-11-20 10:01:00")}));
  EXPECT_EQ(id_text(finding.id), "init-stuck.snapshot");
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.statement,
            "rank 3 has not joined it: 3 ranks are inside the creation of communicator 0xabc of 4 ranks");
}

TEST(RasRules, WhoLeftWhileOthersWork) {
  Comm gone = world(9, 4), closing = world(9, 4), aborted = world(9, 4);
  gone.ranks.pop_back();
  gone.missing = {missing(3, false, false)};
  EXPECT_EQ(id_text(only(judge_all({snapshot({gone})})).id), "never-joined.left");
  closing.ranks[1].finalize_called = true;
  const Finding finding = only(judge_all({snapshot({closing})}));
  EXPECT_EQ(id_text(finding.id), "never-joined.closing");
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{1});
  aborted.ranks[2].aborted = aborted.ranks[2].destroyed = true;
  EXPECT_EQ(id_text(only(judge_all({snapshot({aborted})})).id), "aborted.snapshot");
  // All of them: the job ends.
  for (Rank& rank : closing.ranks) rank.finalize_called = true;
  EXPECT_TRUE(judge_all({snapshot({closing})}).empty());
}

TEST(RasRules, SayWhatIsMissing) {
  Snapshot damaged = snapshot({world(9)});
  damaged.timeouts = 2;
  damaged.cut = true;
  damaged.bad_ranks = 1;
  const auto findings = judge_all({damaged});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(id_text(findings[0].id), "evidence-missing.ras-damaged");
  EXPECT_EQ(findings[0].severity, Severity::kWarning) << "nothing whole is there";
  EXPECT_EQ(id_text(findings[1].id), "evidence-missing.ras-timeouts");
  EXPECT_EQ(findings[1].severity, Severity::kNote);
}

TEST(RasRules, AWholeSnapshotIsWorthMoreThanANewerOneThatEndsEarly) {
  Comm comm = world(9);
  comm.ranks[5].launched[1].second = 8;
  Snapshot cut = snapshot({}, "2026-11-20 10:00:05");
  cut.cut = true;
  const auto findings = judge_all({snapshot({comm}), cut});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(id_text(findings[0].id), "never-joined.snapshot");
  EXPECT_EQ(findings[0].severity, Severity::kWarning) << "the one that ends early is of no other job";
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{5});
  EXPECT_EQ(findings[1].severity, Severity::kNote);
}

TEST(RasRules, OneThatEndsEarlyIsNoEarlierOne) {
  Comm early = world(9), late = world(12);
  early.ranks[5].launched[1].second = late.ranks[5].launched[1].second = 8;
  // Rank 5, which has gone on since, is the last one in it.
  Snapshot cut = snapshot({world(14)}, "2026-11-20 10:00:14");
  cut.cut = true;
  cut.comms[0].ranks.resize(6);
  const Snapshot first = snapshot({early}), second = snapshot({late}, "2026-11-20 10:00:07");
  const auto behind = judge_all({first, second, cut});
  EXPECT_EQ(id_text(behind.at(0).id), "never-joined.snapshot");
  EXPECT_EQ(behind.at(0).severity, Severity::kCritical) << "both whole ones show it";
  cut.time = "2026-11-20 10:00:03";
  cut.comms[0].ranks.resize(5);
  const auto between = judge_all({first, cut, second});
  EXPECT_EQ(between.at(0).severity, Severity::kCritical) << "rank 5 stands behind the end of the second";
}

TEST(RasRules, TimeoutsAreThoseOfTheSnapshotThatIsJudged) {
  Snapshot whole = snapshot({world(9)}), cut = snapshot({world(9)}, "2026-11-20 10:00:05");
  whole.timeouts = 2;  // which stand at its end
  cut.cut = true;
  const auto findings = judge_all({whole, cut});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return id_text(finding.id) == "evidence-missing.ras-timeouts";
  }));
}

TEST(RasRules, RanksOfAGroupAreNotTakenForRanksOfTheJob) {
  Comm first = world(9, 4), second = world(9, 4);
  second.hash = "0xdef";
  for (Rank& rank : second.ranks) rank.pid += 50;
  second.ranks[1].launched[1].second = 8;
  const Finding finding = only(judge_all({snapshot({first, second})}));
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_NE(finding.statement.find("rank 1 of communicator 0xdef"), std::string::npos) << finding.statement;
}

TEST(RasRules, ARankThatSaysNoCountsIsNotBehind) {
  Comm comm = world(9);
  comm.ranks[5].launched.clear();
  EXPECT_TRUE(judge_all({snapshot({comm})}).empty());
}

std::vector<Finding> judge_text(const std::string& text) {
  std::vector<Snapshot> snapshots;
  for (std::string_view rest = text; auto report = next_report(rest);)
    snapshots.push_back(*std::move(report));
  return judge_all(std::move(snapshots));
}
std::string text_report(const std::string& details, const std::string& gpus = "8") {
  return "NCCL version 2.26.2+cuda12.4 compiled with CUDA 12.4\nJob summary\n===========\n\n" +
         ("      1          8            1          8        " + gpus) +
         "\n    0         1         1         8         8         8  RUNNING  "
         "MISMATCH\n\nWarnings\n========\n\n#0-0 (ab) "
         "MISMATCH\n" +
         details;
}

// A text names those who stand out, and not the others, who are at work.
TEST(RasRules, WhoAbortsAmongOthersThatTheTextDoesNotNameIsAWarning) {
  Comm comm{.hash = "0xabc", .size = 8, .is_summary = true, .ranks = {member(2, 9)}, .missing = {}};
  comm.ranks[0].aborted = true;
  EXPECT_EQ(only(judge_all({snapshot({comm})})).severity, Severity::kWarning);
  comm.size = 1;
  EXPECT_EQ(only(judge_all({snapshot({comm})})).severity, Severity::kNote);
}

// The table says that something is wrong, and what it is, is not there.
TEST(RasRules, ATextThatEndsEarlyIsNoHealthyJob) {
  const std::string text = text_report("  Communicator ranks have different AllReduce operation counts\n");
  for (size_t length = text.find("Job summary") + 11; length <= text.size(); ++length) {
    const Finding finding = only(judge_text(text.substr(0, length)));
    EXPECT_EQ(id_text(finding.id), "evidence-missing.ras-damaged");
    EXPECT_EQ(finding.severity, Severity::kWarning);
  }
}

TEST(RasRules, TheTextNamesWhoIsBehind) {
  const std::string text = text_report(
      "  Communicator ranks have different AllReduce operation counts\n  7 ranks have launched up to "
      "operation 9\n"
      "  Rank 5 has launched up to operation 8 -- GPU 5 managed by process 105 on node 192.0.2.1\n");
  const Finding once = only(judge_text(text));
  EXPECT_EQ(id_text(once.id), "never-joined.snapshot");
  EXPECT_EQ(
      once.statement,
      "rank 5 has launched 8 AllReduce operations of communicator 0xab of 8 ranks, 7 other ranks have launched up "
      "to 9");
  EXPECT_EQ(once.severity, Severity::kWarning);
  EXPECT_EQ(once.ranks, std::vector<int32_t>{5});
  EXPECT_FALSE(once.op_index) << "operations of other functions are not counted";
  const Finding local = only(judge_text(text_report(text.substr(text.find("  Communicator")), "16")));
  EXPECT_TRUE(local.ranks.empty()) << "a communicator of a part of the job";
}

TEST(RasRules, WhoIsBehindInOneFunctionAndAheadInAnotherDidOtherThings) {
  const Finding finding = only(judge_text(
      text_report("  Communicator ranks have different AllReduce operation counts\n  7 ranks have launched "
                  "up to operation 9\n"
                  "  Rank 5 has launched up to operation 8 -- GPU 5 managed by process 105 on node h\n"
                  "  Communicator ranks have different Broadcast operation counts\n  7 ranks have launched "
                  "up to operation 2\n"
                  "  Rank 5 has launched up to operation 3 -- GPU 5 managed by process 105 on node h\n")));
  EXPECT_EQ(id_text(finding.id), "joined-other-op.snapshot");
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{5});
}

TEST(RasRules, WhereTheTextOnlyCountsNobodyIsBlamed) {
  const Finding finding =
      only(judge_text(text_report("  Communicator ranks have different AllReduce operation counts\n  4 ranks "
                                  "have launched up to operation 9\n"
                                  "  4 ranks have launched up to operation 8\n")));
  EXPECT_EQ(id_text(finding.id), "evidence-missing.ras-ranks");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.evidence[1], "4 ranks launched 8 AllReduce operations");
}

TEST(RasRules, TheTextNamesWhoLeaves) {
  const Finding finding = only(judge_text(
      text_report("  Communicator ranks have different status\n  7 ranks have status RUNNING\n"
                  "  Rank 6 has status FINALIZE -- GPU 6 managed by process 106 on node 192.0.2.1\n")));
  EXPECT_EQ(id_text(finding.id), "never-joined.closing");
  EXPECT_NE(finding.statement.find("7 other ranks are still at work"), std::string::npos)
      << finding.statement;
}

}  // namespace
}  // namespace lockstep::analysis::ras_rules
