// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "analysis/analysis.h"
#include "analysis/hang/blocks.h"
#include "analysis/testing/job_builder.h"
#include "model/record_gaps.h"

namespace lockstep::analysis::hang {
extern const Analysis kAnalysis;
namespace {

using testing::at_ms;
using testing::Call;
using testing::JobBuilder;

std::vector<Finding> findings_of(const model::Job& job) {
  std::vector<Finding> findings;
  kAnalysis.run(job, findings);
  return findings;
}

std::string texts(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += std::string(severity_text(finding.severity)) + " " + std::string(id_text(finding.id)) + ": " +
            finding.statement + "\n";
    for (const std::string& line : finding.evidence) text += "  " + line + "\n";
  }
  return text;
}

// Ten all-reduces, 100 ms apart, until 1000 ms; then nothing but heartbeats until `until_ms`, and a kill of
// everybody.
JobBuilder ten_steps(uint32_t ranks, double until_ms, double gpu_ms = 0.5) {
  JobBuilder job(ranks);
  job.steps(job.world(), 10, 0, 100, gpu_ms);
  job.all_killed_at(until_ms);
  return job;
}
// All but one are in the 11th on the GPU.
JobBuilder eleventh_without(uint32_t ranks, uint32_t missing, double until_ms) {
  JobBuilder job = ten_steps(ranks, until_ms);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank != missing) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  }
  return job;
}

void expect(const std::vector<Finding>& findings, FindingClass finding_class, std::vector<int32_t> ranks,
            Severity severity = Severity::kCritical) {
  ASSERT_EQ(findings.size(), 1u) << texts(findings);
  EXPECT_EQ(class_text(class_of(findings[0].id)), class_text(finding_class)) << texts(findings);
  EXPECT_EQ(findings[0].ranks, ranks) << texts(findings);
  EXPECT_EQ(findings[0].severity, severity) << texts(findings);
}

TEST(Hang, AHealthyRunHasNoFinding) {
  JobBuilder job(4);
  job.steps(job.world(), 10, 0, 100);
  auto findings = findings_of(job.build());
  EXPECT_TRUE(findings.empty()) << texts(findings);
}

// They run, so nothing has broken off.
JobBuilder running(JobBuilder job, uint32_t ranks) {
  for (uint32_t rank = 0; rank < ranks; ++rank) job.process(rank).liveness = model::Liveness::kRunning;
  return job;
}

// How long others wait, and for how long the one is silent: each once.
TEST(Hang, SaysEachTimeOnce) {
  const auto findings = findings_of(eleventh_without(4, 2, 60'000).build());
  ASSERT_EQ(findings.size(), 1u);
  const std::string text = texts(findings);
  const auto count = [&](const std::string& part) {
    size_t times = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
    return times;
  };
  EXPECT_EQ(count("59.0 s"), 1u) << text;
  EXPECT_EQ(count("before its recording ends, and nothing since"), 1u) << text;
  EXPECT_EQ(count("recorded nothing in the last"), 0u) << text;
}

TEST(Hang, RanksThatRunAndCallNothingMoreAreHealthy) {
  auto findings = findings_of(running(ten_steps(4, 60'000), 4).build());
  EXPECT_TRUE(findings.empty()) << texts(findings);
}

TEST(Hang, ARankAheadByAQueueIsHealthy) {
  JobBuilder job = ten_steps(4, 1'060);
  for (int i = 0; i < 5; ++i) job.call(0, 0, {.called_ms = 1000 + i * 10.0});
  auto findings = findings_of(running(std::move(job), 4).build());
  EXPECT_TRUE(findings.empty()) << texts(findings);
}

TEST(Hang, NamesTheRankThatNeverJoined) {
  auto findings = findings_of(eleventh_without(8, 5, 60'000).build());
  expect(findings, FindingClass::kNeverJoined, {5});
  EXPECT_EQ(id_text(findings[0].id), "never-joined");
  EXPECT_EQ(
      findings[0].statement,
      "rank 5 (GPU 5 of node0, pid 1005) never called operation 10 of world (its 11th AllReduce); 7 ranks have waited 59.0 s for it");
  EXPECT_EQ(findings[0].op_index, 10u);
  EXPECT_EQ(findings[0].comm, "world");
  EXPECT_EQ(findings[0].func, "AllReduce");
  EXPECT_EQ(findings[0].since_ns, at_ms(1000.1));
  EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"node0"});
  EXPECT_TRUE(findings[0].needed_evidence.empty());
}

// A graph that was captured at 0 ms runs every 100 ms for a minute; at 60 s, on all but `missing`.
JobBuilder replays_until_60s(uint32_t ranks, uint32_t missing, double until_ms) {
  JobBuilder job(ranks);
  const uint32_t world = job.world();
  for (uint32_t i = 1; i < 600; ++i) {
    const double ms = i * 100.0;
    for (uint32_t rank = 0; rank < ranks; ++rank)
      job.call(rank, world,
               {.called_ms = 0, .gpu_start_ms = ms + 0.1, .gpu_end_ms = ms + 0.5, .replayed_ms = ms});
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank != missing)
      job.call(rank, world, {.called_ms = 0, .gpu_start_ms = 60'000.1, .replayed_ms = 60'000});
  }
  job.all_killed_at(until_ms);
  return job;
}

TEST(Hang, ARankIsInAReplaySinceItsGraphRanAndNotSinceItWasCaptured) {
  auto findings = findings_of(running(replays_until_60s(4, 2, 60'050), 4).build());
  EXPECT_TRUE(findings.empty()) << texts(findings);
}

TEST(Hang, NamesTheRankWhoseGraphDidNotRun) {
  auto findings = findings_of(replays_until_60s(4, 2, 70'000).build());
  expect(findings, FindingClass::kNeverJoined, {2});
  EXPECT_EQ(findings[0].since_ns, at_ms(60'000.1));
  EXPECT_EQ(findings[0].op_index, 599u);
  EXPECT_NE(findings[0].statement.find("waited 10.0 s"), std::string::npos) << findings[0].statement;
}

TEST(Hang, SaysWhenTheRecordingEndsTooSoonToTell) {
  auto findings = findings_of(eleventh_without(8, 5, 2'700).build());
  expect(findings, FindingClass::kNeverJoined, {5}, Severity::kWarning);
  EXPECT_NE(findings[0].needed_evidence.find("too soon"), std::string::npos) << findings[0].needed_evidence;
}

TEST(Hang, ALongGapBeforeMakesAWaitNormal) {
  JobBuilder job(2);
  uint32_t world = job.world();
  job.steps(world, 10, 0, 100);
  job.steps(world, 10, 60'000, 100);  // a checkpoint of a minute
  job.call(0, world, {.called_ms = 61'100});
  for (uint32_t rank = 0; rank < 2; ++rank) job.heartbeat(rank, 100'000);
  auto findings = findings_of(running(std::move(job), 2).build());
  EXPECT_TRUE(findings.empty()) << texts(findings);
}

TEST(Hang, NamesTheRankThatLeft) {
  JobBuilder job = eleventh_without(4, 2, 60'000);
  job.finalized(0, 2, 950);
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kNeverJoined, {2});
  EXPECT_EQ(id_text(findings[0].id), "never-joined.finished");
}

TEST(Hang, FollowsTheWaitIntoASubgroup) {
  // Ranks 0 and 1 wait in the world for 2; 2 waits in a pair for 3, which sleeps.
  JobBuilder job(4);
  uint32_t world = job.world(), pair = job.comm("pair", {2, 3});
  job.steps(world, 10, 0, 100);
  job.steps(pair, 10, 20, 100);
  job.call(2, pair, {.called_ms = 1020, .gpu_start_ms = 1021});
  for (uint32_t rank : {0u, 1u}) job.call(rank, world, {.called_ms = 1100, .gpu_start_ms = 1101});
  for (uint32_t rank = 0; rank < 4; ++rank) job.heartbeat(rank, 30'000);
  auto findings = findings_of(job.build());
  ASSERT_FALSE(findings.empty());
  expect(findings, FindingClass::kNeverJoined, {3});
  EXPECT_EQ(findings[0].evidence[0],
            "waiting in it: ranks 0 and 1; rank 0 longest; 1 rank waits in other operations");
}

TEST(Hang, NamesTheDeadRank) {
  JobBuilder job = eleventh_without(4, 1, 30'000);
  job.heartbeat(1, 1'200);
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kRankDead, {1});
}

TEST(Hang, ARankThatDiedInsideAnOperationIsDead) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank = 0; rank < 4; ++rank) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  job.heartbeat(3, 1'500);
  expect(findings_of(job.build()), FindingClass::kRankDead, {3});
}

TEST(Hang, ARankThatWasQuietForLongBeforeItEndedDidNotComeAlive) {
  JobBuilder job = eleventh_without(4, 1, 60'000);
  job.heartbeat(1, 40'000);
  expect(findings_of(job.build()), FindingClass::kNeverJoined, {1});
}

TEST(Hang, AStoppedProcessIsNotDead) {
  JobBuilder job = eleventh_without(4, 1, 30'000);
  job.heartbeat(1, 1'200);
  for (uint32_t rank = 0; rank < 4; ++rank) job.process(rank).liveness = model::Liveness::kRunning;
  job.process(1).liveness = model::Liveness::kStopped;
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kNeverJoined, {1});
  EXPECT_EQ(id_text(findings[0].id), "never-joined.stopped");
}

TEST(Hang, AProcessThatIsGoneWhileOthersRunIsDead) {
  JobBuilder job = eleventh_without(4, 1, 5'000);
  for (uint32_t rank = 0; rank < 4; ++rank) job.process(rank).liveness = model::Liveness::kRunning;
  job.process(1).liveness = model::Liveness::kGone;
  expect(findings_of(job.build()), FindingClass::kRankDead, {1});
}

TEST(Hang, HelpersOfRanksAreNotMissed) {
  JobBuilder builder = eleventh_without(4, 1, 30'000);
  builder.heartbeat(1, 1'200);
  model::Job job = builder.build();
  for (uint32_t i = 0; i < 6; ++i) {
    model::JobProcess helper;
    helper.row = job.processes[i % 4].row;
    helper.row.pid += 100 + i;
    helper.row.last_ns = 0;
    if (i == 5) helper.row.rank = -1;
    helper.host = job.processes[i % 4].host;
    helper.liveness = model::Liveness::kGone;
    job.processes.push_back(std::move(helper));
  }
  expect(findings_of(job), FindingClass::kRankDead, {1});
}

TEST(Hang, AHostThatFellSilentIsUnreachable) {
  JobBuilder job(8, 2);
  uint32_t world = job.world();
  job.steps(world, 10, 0, 100);
  for (uint32_t rank = 0; rank < 8; ++rank) {
    job.killed(rank);
    bool silent = rank == 4 || rank == 5;
    job.heartbeat(rank, silent ? 950 + rank : 30'000);
    if (!silent) job.call(rank, world, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  }
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kRankUnreachable, {4, 5});
  EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"node2"});
}

TEST(Hang, ARankWithoutAFileIsUnreachable) {
  JobBuilder job = eleventh_without(4, 1, 30'000);
  job.without(1);
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kRankUnreachable, {1});
}

TEST(Hang, MostFilesAbsentIsMissingEvidence) {
  JobBuilder job = eleventh_without(4, 1, 30'000);
  for (uint32_t rank : {1u, 2u, 3u}) job.without(rank);
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kEvidenceMissing, {1, 2, 3});
  EXPECT_FALSE(findings[0].needed_evidence.empty());
}

TEST(Hang, AFileThatIsAbsentFromAHealthyRunIsMissingEvidence) {
  JobBuilder job(4);
  job.steps(job.world(), 10, 0, 100);
  job.without(2);
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kEvidenceMissing, {2}, Severity::kWarning);
}

TEST(Hang, TooManyDeadNameNoCause) {
  JobBuilder job = eleventh_without(4, 1, 30'000);
  for (uint32_t rank : {1u, 2u, 3u}) job.heartbeat(rank, 200 + rank * 1'000);
  expect(findings_of(job.build()), FindingClass::kTooManyFailed, {1, 2, 3});
}

TEST(Hang, SaysWhatDiffersInAnotherOperation) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank = 0; rank < 4; ++rank)
    job.call(rank, 0,
             {.func = rank == 2 ? "Broadcast" : "AllReduce", .called_ms = 1000, .gpu_start_ms = 1000.1});
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kJoinedOtherOp, {2});
  EXPECT_EQ(findings[0].statement.substr(0, 55), "rank 2 (GPU 2 of node0, pid 1002) called Broadcast of 1")
      << findings[0].statement;
  EXPECT_NE(texts(findings).find("they differ in function"), std::string::npos) << texts(findings);
}

TEST(Hang, SizesThatDifferReadDifferently) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank = 0; rank < 4; ++rank)
    job.call(rank, 0, {.called_ms = 1000, .bytes = (1u << 20) + (rank == 2 ? 4 : 0), .gpu_start_ms = 1000.1});
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kJoinedOtherOp, {2});
  const std::string& statement = findings[0].statement;
  EXPECT_NE(statement.find("called AllReduce of 1,048,580 B ncclFloat32 as"), std::string::npos) << statement;
  EXPECT_NE(statement.find("called AllReduce of 1,048,576 B ncclFloat32"), std::string::npos) << statement;
}

TEST(Hang, ARankThatLeftOutACallIsInAnotherOperation) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    if (rank != 1) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
    job.call(rank, 0, {.func = "AllGather", .called_ms = 1001});
  }
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kJoinedOtherOp, {1});
  EXPECT_NE(texts(findings).find("one call was left out"), std::string::npos) << texts(findings);
}

TEST(Hang, DifferentSizesThatDidNotStopTheJobAreAWarning) {
  JobBuilder job(2);
  uint32_t world = job.world();
  for (uint32_t rank = 0; rank < 2; ++rank)
    job.call(rank, world, {.called_ms = 1, .bytes = 100 + rank, .gpu_start_ms = 2, .gpu_end_ms = 3});
  job.steps(world, 10, 100, 100);
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kJoinedOtherOp, {0, 1}, Severity::kWarning);
}

TEST(Hang, PrintsTheCycleOfADeadlock) {
  JobBuilder job(4);
  uint32_t a = job.comm("a", {0, 1}), b = job.comm("b", {0, 1, 2, 3});
  job.steps(a, 10, 0, 100);
  job.steps(b, 10, 20, 100);
  job.call(0, a, {.called_ms = 1000, .gpu_start_ms = 1001});
  for (uint32_t rank : {1u, 2u, 3u}) job.call(rank, b, {.called_ms = 1000, .gpu_start_ms = 1001});
  for (uint32_t rank = 0; rank < 4; ++rank) job.heartbeat(rank, 30'000);
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kCrossCommDeadlock, {1});
  EXPECT_EQ(
      findings[0].statement,
      "rank 1 (GPU 1 of node0, pid 1001) reached operation 10 of b (its 11th AllReduce) before operation "
      "10 of a (its 11th AllReduce), reversing its earlier order; ranks 0 and 1 wait for each other");
  const auto& evidence = findings[0].evidence;
  EXPECT_EQ(std::count(evidence.begin(), evidence.end(),
                       "rank 0 in operation 10 of a (its 11th AllReduce) for rank 1"),
            1);
  EXPECT_EQ(std::count(evidence.begin(), evidence.end(),
                       "rank 1 in operation 10 of b (its 11th AllReduce) for rank 0"),
            1);
}

TEST(Hang, ASendWithoutItsReceiveWaitsForThePeer) {
  JobBuilder job(3);
  uint32_t pp = job.world("pp");
  for (int i = 0; i < 10; ++i) {
    job.call(0, pp, {.func = "Send", .called_ms = i * 100.0, .peer = 1});
    job.call(1, pp, {.func = "Recv", .called_ms = i * 100.0, .peer = 0});
  }
  job.call(0, pp, {.func = "Send", .called_ms = 1000, .peer = 1});
  for (uint32_t rank = 0; rank < 3; ++rank) job.heartbeat(rank, 30'000);
  auto findings = findings_of(job.build());
  expect(findings, FindingClass::kNeverJoined, {1});
  EXPECT_EQ(
      findings[0].statement,
      "rank 1 (GPU 1 of node0, pid 1001) never called its end of transfer 10 from rank 0 to rank 1 on pp "
      "(Send); 1 rank has waited 29.0 s for it");
}

TEST(Hang, AKernelThatDoesNotEndAnywhereIsStuckInTheGpu) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank = 0; rank < 4; ++rank) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  expect(findings_of(job.build()), FindingClass::kStuckInGpu, {});
}

TEST(Hang, NamesTheGpuWhoseKernelDoesNotBegin) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank = 0; rank < 4; ++rank)
    job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = rank == 2 ? -1 : 1000.1});
  expect(findings_of(job.build()), FindingClass::kStuckInGpu, {2});
}

TEST(Hang, AmdsGpusAreLookedAtWithAmdsTools) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
    job.process(rank).row.gpu_clock = static_cast<uint8_t>(model::GpuClock::kAmdTicks);
  }
  EXPECT_EQ(findings_of(job.build()).at(0).advice,
            "Check dmesg for errors of amdgpu, and amd-smi on these GPUs; another kernel of the job may hold "
            "the GPU.");
}

// CUPTI reports a kernel once it is over. What it has not reported may run, and says nothing of who waits.
TEST(Hang, KernelsThatAreToldOnceTheyAreOverAreNotTakenToWait) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank = 0; rank < 4; ++rank) job.call(rank, 0, {.called_ms = 1000});
  const auto state = [](const model::Job& of) {
    const model::Member& member = of.members[0];
    return progress(of.processes[0].ops, member.first, member.ops).state;
  };
  model::Job built = job.build();
  EXPECT_EQ(state(built), Progress::State::kQueued);
  for (model::JobProcess& process : built.processes)
    process.ops.gpu_reported_from_ns = model::JobOps::kNeverReported;
  EXPECT_EQ(state(built), Progress::State::kUnknown);
  auto findings = findings_of(built);
  expect(findings, FindingClass::kEvidenceMissing, {}, Severity::kWarning);
}

// One in two hundred is known. What was called after it may well run: those who wait are taken at their call.
TEST(Hang, ARankThatSleepsIsFoundThoughOnlySomeOperationsHaveGpuTimes) {
  JobBuilder job(8);
  const auto step = [&](int number, bool is_timed, uint32_t missing) {
    const double at = number * 100.0;
    for (uint32_t rank = 0; rank < 8; ++rank) {
      if (rank == missing) continue;
      job.call(rank, 0,
               {.called_ms = at,
                .gpu_start_ms = is_timed ? at + 0.1 : -1,
                .gpu_end_ms = is_timed ? at + 0.6 : -1});
    }
  };
  job.world();
  for (int number = 0; number <= 250; ++number) step(number, number == 200, model::kNoRow);
  step(251, false, 3);
  job.all_killed_at(60'000);
  model::Job built = job.build();
  for (model::JobProcess& process : built.processes)
    process.ops.gpu_reported_from_ns = model::JobOps::kNeverReported;
  expect(findings_of(built), FindingClass::kNeverJoined, {3});
}

model::OpenStep step(uint32_t member, int32_t peer, bool is_send, model::StepWait wait, int32_t number) {
  return {.member = member,
          .peer = peer,
          .channel = 0,
          .is_send = is_send,
          .wait = wait,
          .step = number,
          .steps = 16,
          .since_ns = at_ms(1001)};
}

// A ring 0 -> 1 -> 2 -> 0 over the network, in which all have begun the operation and nothing moves.
std::vector<Finding> ring_findings(std::initializer_list<model::OpenStep> steps) {
  JobBuilder job = ten_steps(3, 60'000);
  for (uint32_t rank = 0; rank < 3; ++rank) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  model::Job built = job.build();
  for (const model::OpenStep& step : steps) built.processes[step.member].open_steps.push_back(step);
  return findings_of(built);
}

TEST(Hang, NamesTheTransferThatTheOthersFollowFrom) {
  // What 1 sent to 2 is not confirmed; the others starve.
  using model::StepWait;
  auto findings =
      ring_findings({step(0, 1, true, StepWait::kGpu, 5), step(1, 0, false, StepWait::kReceive, 5),
                     step(1, 2, true, StepWait::kSend, 4), step(2, 1, false, StepWait::kReceive, 4),
                     step(2, 0, true, StepWait::kGpu, 4), step(0, 2, false, StepWait::kReceive, 4)});
  expect(findings, FindingClass::kStuckInNetwork, {1, 2});
  EXPECT_NE(findings[0].statement.find("rank 1 to rank 2, channel 0, step 4 of 16"), std::string::npos)
      << findings[0].statement;
}

TEST(Hang, WhatASenderIsDoneWithAndNobodyReceivedIsLostBetweenThem) {
  using model::StepWait;
  auto findings =
      ring_findings({step(1, 2, true, StepWait::kGpu, 5), step(2, 1, false, StepWait::kReceive, 4),
                     step(2, 0, true, StepWait::kGpu, 5), step(0, 2, false, StepWait::kReceive, 5),
                     step(0, 1, true, StepWait::kGpu, 6), step(1, 0, false, StepWait::kReceive, 6)});
  expect(findings, FindingClass::kStuckInNetwork, {1, 2});
}

TEST(Hang, AGpuThatHasItsDataAndSendsNothingIsNamed) {
  using model::StepWait;
  auto findings =
      ring_findings({step(1, 2, true, StepWait::kGpu, 4), step(1, 0, false, StepWait::kReceive, 5),
                     step(2, 1, false, StepWait::kReceive, 4), step(2, 0, true, StepWait::kGpu, 5),
                     step(0, 2, false, StepWait::kReceive, 5), step(0, 1, true, StepWait::kGpu, 5)});
  expect(findings, FindingClass::kStuckInNetwork, {1});
  EXPECT_EQ(id_text(findings[0].id), "stuck-in-network.gpu");
}

// Rank 0's transfer to rank 1 of the small group is lost, and the world's operation that it called later has
// no data of its GPU, which stands in the first; called before the first, it is a cause of its own.
TEST(Hang, ATransferThatWaitsForARankHeldElsewhereIsNoCause) {
  for (const bool called_later : {true, false}) {
    JobBuilder job(4);
    const uint32_t world = job.world(), pair = job.comm("pair", {0, 1});
    job.steps(world, 10, 0, 100, 0);
    job.steps(pair, 10, 50, 100);
    for (const uint32_t rank : {0U, 1U}) job.call(rank, pair, {.called_ms = 1000, .gpu_start_ms = 1000.1});
    for (uint32_t rank = 0; rank < 4; ++rank)
      job.call(rank, world, {.called_ms = called_later ? 1000.5 : 999});
    job.all_killed_at(60'000);
    model::Job built = job.build();
    const uint32_t of_world = job.member(world, 0), of_pair = job.member(pair, 0);
    std::vector<model::OpenStep>& steps = built.processes[0].open_steps;
    steps.push_back(step(of_world, 1, true, model::StepWait::kGpu, 0));
    steps.push_back(step(of_pair, 1, true, model::StepWait::kSend, 1));
    const auto findings = findings_of(built);
    if (called_later)
      expect(findings, FindingClass::kStuckInNetwork, {0, 1});
    else
      EXPECT_EQ(findings.size(), 2u) << texts(findings);
  }
}

TEST(Hang, AStepWhoseEndWasLostIsNotStuck) {
  JobBuilder job = ten_steps(2, 30'000, 0);
  model::Job built = job.build();
  built.processes[0].open_steps.push_back(step(0, 1, true, model::StepWait::kSend, 4));
  built.processes[0].net_pairs.push_back(
      {.member = 0, .peer = 1, .channel = 0, .is_send = true, .steps = 9, .last_ns = at_ms(9000)});
  for (const Finding& finding : findings_of(built))
    EXPECT_NE(class_of(finding.id), FindingClass::kStuckInNetwork) << finding.statement;
}

TEST(Hang, WithoutGpuTimesItSaysWhatIsMissing) {
  auto findings = findings_of(ten_steps(4, 30'000, 0).build());
  expect(findings, FindingClass::kEvidenceMissing, {}, Severity::kWarning);
  EXPECT_NE(findings[0].needed_evidence.find("-m deep"), std::string::npos);
  EXPECT_NE(findings[0].needed_evidence.find("liblockstep-cuda.so"), std::string::npos);
}

TEST(Hang, WithoutGpuTimesOfAmdsItNamesNoSettingOfCuda) {
  JobBuilder job = ten_steps(4, 30'000, 0);
  for (uint32_t rank = 0; rank < 4; ++rank)
    job.process(rank).row.gpu_clock = static_cast<uint8_t>(model::GpuClock::kAmdTicks);
  const auto findings = findings_of(job.build());
  EXPECT_NE(findings.at(0).needed_evidence.find("liblockstep-hsa.so"), std::string::npos) << texts(findings);
  EXPECT_EQ(texts(findings).find("CUDA"), std::string::npos) << texts(findings);
}

TEST(Hang, WhereKernelsAreToldItSaysThatTheyAreOnceTheyEnd) {
  model::Job job = ten_steps(4, 30'000, 0).build();
  for (model::JobProcess& process : job.processes) {
    process.ops.gpu_source[0] = static_cast<uint8_t>(model::GpuTimeSource::kCupti);
    process.ops.gpu_start_ns[0] = process.ops.launched_ns[0] + 1'000;
    process.ops.gpu_end_ns[0] = process.ops.launched_ns[0] + 2'000;
  }
  auto findings = findings_of(job);
  expect(findings, FindingClass::kEvidenceMissing, {}, Severity::kWarning);
  EXPECT_NE(findings[0].statement.find("only once they end"), std::string::npos) << findings[0].statement;
  EXPECT_NE(findings[0].needed_evidence.find("-m deep"), std::string::npos);
  EXPECT_EQ(findings[0].needed_evidence.find("liblockstep-cuda.so"), std::string::npos) << "it is there";
}

TEST(Hang, OfOtherToolsFilesItSpeaksInTheirWords) {
  const auto listed = [](JobBuilder builder) {
    builder.without(3);
    model::Job job = builder.build();
    job.files = "Flight Recorder dumps";
    job.setting = "TORCH_FR_DUMP_ON_TIMEOUT=1";
    auto findings = findings_of(job);
    EXPECT_EQ(findings.size(), 1u) << texts(findings);
    std::string text;
    for (const Finding& finding : findings) {
      text += finding.advice + ' ' + finding.needed_evidence;
      for (const std::string& line : finding.evidence) text += ' ' + line;
    }
    EXPECT_EQ(text.find("run directory"), std::string::npos) << text;
    EXPECT_EQ(text.find("launcher"), std::string::npos) << text;
    EXPECT_EQ(text.find("capture library"), std::string::npos) << text;
    EXPECT_NE(text.find("TORCH_FR_DUMP_ON_TIMEOUT=1"), std::string::npos) << text;
    return text;
  };
  JobBuilder well(4);
  well.steps(well.world(), 10, 10, 10);
  EXPECT_NE(listed(std::move(well)).find("Flight Recorder dumps name 4 ranks"), std::string::npos);
  listed(eleventh_without(4, 3, 30'000));
}

TEST(Hang, ACommunicatorThatOneRankNeverEnters) {
  JobBuilder job = ten_steps(4, 30'000);
  uint32_t late = job.world("late");
  job.leave_out(late, 3);
  model::Job built = job.build();
  for (uint32_t row : built.comms[late].members) {
    if (row != model::kNoRow) built.members[row].init_ns = at_ms(1000);
  }
  auto findings = findings_of(built);
  expect(findings, FindingClass::kInitStuck, {3});
}

TEST(Hang, ACommunicatorThatIsNeverUsedIsHealthy) {
  JobBuilder job = ten_steps(4, 30'000);
  job.world("unused");
  auto findings = findings_of(running(std::move(job), 4).build());
  EXPECT_TRUE(findings.empty()) << texts(findings);
}

TEST(Hang, FilesThatWereCutShortBlameNobody) {
  JobBuilder job = eleventh_without(4, 1, 30'000);
  model::Job built = job.build();
  built.losses.append({.process = 1,
                       .stage = built.strings.intern("capture"),
                       .kind = built.strings.intern("disk_full"),
                       .count = 9,
                       .detail = 0});
  for (const Finding& finding : findings_of(built))
    EXPECT_NE(class_of(finding.id), FindingClass::kNeverJoined);
}

model::Job with_gap(model::Job job, uint32_t process, std::string_view kind) {
  job.losses.append({.process = process,
                     .stage = job.strings.intern("read"),
                     .kind = job.strings.intern(kind),
                     .count = 3,
                     .detail = job.strings.intern("of 11 chunks cannot be read: /run/p.lks")});
  return job;
}

TEST(Hang, ARankWhoseFileEndsTooEarlyIsUnknownNotTheCulprit) {
  auto findings = findings_of(with_gap(eleventh_without(4, 1, 30'000).build(), 1, model::kLossIncompleteEnd));
  expect(findings, FindingClass::kEvidenceMissing, {1}, Severity::kWarning);
  EXPECT_EQ(id_text(findings[0].id), "evidence-missing.incomplete");
  EXPECT_EQ(findings[0].statement,
            "rank 1's file is incomplete: 3 of 11 chunks cannot be read; Lockstep cannot tell who holds up "
            "operation 10 of world (its 11th AllReduce), in which 3 ranks have waited for 29.0 s");
}

// Rank 1's GPU runs an operation whose other rank has no record of it, and has more of them queued behind: so
// its kernel for the others' operation has not begun, and that is not its doing.
TEST(Hang, AKernelBehindOneThatWaitsForAnIncompleteFileBlamesNobody) {
  JobBuilder job = ten_steps(4, 30'000);
  const uint32_t pair = job.comm("pair", {0, 1}), across = job.comm("across", {1, 2, 3});
  for (int i = 0; i < 3; ++i) {
    for (uint32_t rank : {0u, 1u})
      job.call(rank, pair, {.called_ms = 1000.0 + i, .gpu_start_ms = 1000.1 + i, .gpu_end_ms = 1000.2 + i});
    for (uint32_t rank : {1u, 2u, 3u})
      job.call(rank, across, {.called_ms = 1000.5 + i, .gpu_start_ms = 1000.6 + i, .gpu_end_ms = 1000.7 + i});
  }
  job.call(1, pair, {.called_ms = 1010, .gpu_start_ms = 1010.1});
  job.call(1, across, {.called_ms = 1010.5});
  for (uint32_t rank : {2u, 3u}) job.call(rank, across, {.called_ms = 1010.5, .gpu_start_ms = 1010.6});
  job.call(1, pair, {.called_ms = 1011});
  expect(findings_of(job.build()), FindingClass::kNeverJoined, {0});
  auto findings = findings_of(with_gap(job.build(), 0, model::kLossIncompleteEnd));
  expect(findings, FindingClass::kEvidenceMissing, {0}, Severity::kWarning);
  EXPECT_EQ(id_text(findings[0].id), "evidence-missing.incomplete");
}

// The same of a receive.
TEST(Hang, AKernelBehindAReceiveFromAnIncompleteFileBlamesNobody) {
  JobBuilder job = ten_steps(4, 30'000);
  const uint32_t pair = job.comm("pair", {0, 1}), across = job.comm("across", {1, 2, 3});
  for (int i = 0; i < 3; ++i) {
    const double ms = 1000 + i;
    job.call(0, pair,
             {.func = "Send", .called_ms = ms, .peer = 1, .gpu_start_ms = ms + 0.1, .gpu_end_ms = ms + 0.2});
    job.call(1, pair,
             {.func = "Recv", .called_ms = ms, .peer = 0, .gpu_start_ms = ms + 0.1, .gpu_end_ms = ms + 0.2});
    for (uint32_t rank : {1u, 2u, 3u})
      job.call(rank, across, {.called_ms = ms + 0.5, .gpu_start_ms = ms + 0.6, .gpu_end_ms = ms + 0.7});
  }
  job.call(1, pair, {.func = "Recv", .called_ms = 1010, .peer = 0, .gpu_start_ms = 1010.1});
  job.call(1, across, {.called_ms = 1010.5});
  for (uint32_t rank : {2u, 3u}) job.call(rank, across, {.called_ms = 1010.5, .gpu_start_ms = 1010.6});
  expect(findings_of(job.build()), FindingClass::kNeverJoined, {0});
  const auto findings = findings_of(with_gap(job.build(), 0, model::kLossIncompleteEnd));
  expect(findings, FindingClass::kEvidenceMissing, {0}, Severity::kWarning);
}

// The receiver seems to have posted no buffer; its file does not say.
TEST(Hang, ATransferToARankWithAnIncompleteFileBlamesNobody) {
  JobBuilder job = ten_steps(3, 60'000);
  for (uint32_t rank : {0u, 1u}) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  job.call(2, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1, .gpu_end_ms = 1001});
  const auto stuck = [&] {
    model::Job built = job.build();
    built.processes[1].open_steps.push_back(step(1, 2, true, model::StepWait::kPeer, 4));
    return built;
  };
  expect(findings_of(stuck()), FindingClass::kStuckInNetwork, {1, 2});
  const auto findings = findings_of(with_gap(stuck(), 2, model::kLossIncompleteEnd));
  expect(findings, FindingClass::kEvidenceMissing, {2}, Severity::kWarning);
  EXPECT_EQ(id_text(findings[0].id), "evidence-missing.incomplete");
}

TEST(Hang, BesideAnIncompleteFileWholeOnesProveTheCulprit) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank : {1u, 2u}) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  auto findings = findings_of(with_gap(job.build(), 0, model::kLossIncompleteEnd));
  expect(findings, FindingClass::kNeverJoined, {3});
}

TEST(Hang, DamageInsideARecordDoesNotHideWhereItEnds) {
  auto findings =
      findings_of(with_gap(eleventh_without(4, 1, 30'000).build(), 1, model::kLossIncompleteMiddle));
  expect(findings, FindingClass::kNeverJoined, {1});
}

TEST(Hang, WhereAllStandStillADamagedFileIsMissedBeforeGpuTimes) {
  JobBuilder job = ten_steps(4, 30'000, 0);
  const auto whole = findings_of(job.build());
  expect(whole, FindingClass::kEvidenceMissing, {}, Severity::kWarning);
  EXPECT_EQ(id_text(whole[0].id), "evidence-missing.gpu-times");
  const auto findings = findings_of(with_gap(job.build(), 1, model::kLossIncompleteMiddle));
  expect(findings, FindingClass::kEvidenceMissing, {1}, Severity::kWarning);
  EXPECT_EQ(id_text(findings[0].id), "evidence-missing.incomplete");
  EXPECT_EQ(findings[0].needed_evidence, "whole files of these ranks");
}

// Rank 1 went on with another communicator: what its damage hides may have been the eleventh operation.
TEST(Hang, DamageBehindTheNewestOperationOfACommunicatorLeavesTheNextOpen) {
  JobBuilder job = ten_steps(4, 30'000);
  const uint32_t other = job.comm("other", {0, 1, 2, 3});
  for (uint32_t rank = 0; rank < 4; ++rank) {
    if (rank != 1) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
    job.call(rank, other, {.called_ms = 1001});
  }
  expect(findings_of(job.build()), FindingClass::kNeverJoined, {1});
  for (const auto kind : {model::kLossIncompleteMiddle, model::kLossIncompleteSlightly}) {
    auto findings = findings_of(with_gap(job.build(), 1, kind));
    expect(findings, FindingClass::kEvidenceMissing, {1}, Severity::kWarning);
  }
}

// Rank 2 has lost operations of a group that all left long ago: nobody waits there for it.
TEST(Hang, WhatAGapHidesOfAnOldGroupIsNoCircle) {
  JobBuilder job = ten_steps(4, 30'000);
  const uint32_t early = job.comm("early", {0, 1, 2, 3});
  for (uint32_t rank : {0u, 1u, 3u}) job.call(rank, early, {.called_ms = 0.5, .seq = 3});
  for (uint32_t rank : {0u, 2u, 3u}) job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  model::Job built = with_gap(job.build(), 2, model::kLossIncompleteSlightly);
  expect(findings_of(built), FindingClass::kNeverJoined, {1});
}

TEST(Hang, ADamagedRecordDoesNotProveAMismatch) {
  JobBuilder job = ten_steps(4, 30'000);
  for (uint32_t rank = 0; rank < 4; ++rank)
    job.call(rank, 0, {.called_ms = 1000, .bytes = rank == 2 ? 8u : 16u, .gpu_start_ms = 1000.1});
  expect(findings_of(job.build()), FindingClass::kJoinedOtherOp, {2});
  model::Job damaged = with_gap(job.build(), 2, model::kLossIncompleteMiddle);
  for (const Finding& finding : findings_of(with_gap(std::move(damaged), 2, model::kLossUnproven)))
    EXPECT_EQ(class_of(finding.id), FindingClass::kEvidenceMissing) << finding.statement;
}

TEST(Hang, AFileOfWhichNothingCanBeReadMayBeThatOfAnAbsentRank) {
  JobBuilder job = eleventh_without(4, 1, 30'000);
  job.without(1);
  for (const Finding& finding : findings_of(with_gap(job.build(), model::kNoRow, "unreadable_file")))
    EXPECT_EQ(class_of(finding.id), FindingClass::kEvidenceMissing) << finding.statement;
}

TEST(Hang, AnEarlierIncarnationOfARankIsHistory) {
  JobBuilder job = eleventh_without(2, 1, 30'000);
  model::Job built = job.build();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    model::JobProcess again;
    again.row = built.processes[rank].row;
    again.row.start_ns = at_ms(40'000);
    again.row.heartbeat_ns = again.row.last_ns = at_ms(50'000);
    again.row.closed = 1;
    built.processes.push_back(std::move(again));
  }
  auto findings = findings_of(built);
  EXPECT_TRUE(findings.empty()) << texts(findings);
}

}  // namespace
}  // namespace lockstep::analysis::hang
