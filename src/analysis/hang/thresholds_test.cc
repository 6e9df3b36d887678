// SPDX-License-Identifier: Apache-2.0
// Where one verdict ends and the next begins, from both sides; and which of several answers is given.
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::hang {
extern const Analysis kAnalysis;
namespace {

using model::Liveness;
using testing::JobBuilder;

std::vector<Finding> findings_of(const model::Job& job) {
  std::vector<Finding> findings;
  kAnalysis.run(job, findings);
  return findings;
}
std::string only_id(const model::Job& job) {
  const std::vector<Finding> findings = findings_of(job);
  return findings.size() == 1 ? std::string(id_text(findings[0].id))
                              : std::to_string(findings.size()) + " findings";
}

// Ten all-reduces until 1000 ms; all but the ranks from `first_missing` on are in the 11th, until 30 s.
JobBuilder eleventh_without_last(uint32_t ranks, uint32_t first_missing, uint32_t per_host = 0) {
  JobBuilder job(ranks, per_host);
  job.steps(job.world(), 10, 0, 100);
  for (uint32_t rank = 0; rank < first_missing; ++rank)
    job.call(rank, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
  job.all_killed_at(30'000);
  return job;
}

TEST(Thresholds, MoreThanHalfIsTooMany) {
  for (const auto& [dead, id] :
       {std::pair(3u, "rank-dead"), std::pair(4u, "rank-dead"), std::pair(5u, "too-many-failed")}) {
    JobBuilder job = eleventh_without_last(8, 8 - dead);
    for (uint32_t rank = 8 - dead; rank < 8; ++rank) job.heartbeat(rank, 1'000 + rank * 10);
    EXPECT_EQ(only_id(job.build()), id) << dead;
  }
}

TEST(Thresholds, ThreeSecondsAreClearlyEarlier) {
  for (const auto& [before_ms, id] :
       {std::pair(2'999, "never-joined"), std::pair(3'000, "never-joined"), std::pair(3'001, "rank-dead")}) {
    JobBuilder job(2);
    job.steps(job.world(), 10, 0, 100);
    job.call(0, 0, {.called_ms = 1000, .gpu_start_ms = 1000.1});
    job.all_killed_at(4'200);
    job.heartbeat(1, 4'200 - before_ms);
    EXPECT_EQ(only_id(job.build()), id) << before_ms;
  }
}

// A host that fell silent took all of its ranks along; of one rank nothing tells host and process apart.
TEST(Thresholds, AHostOfOneRankIsADeadRank) {
  JobBuilder one = eleventh_without_last(3, 2, 1);
  one.heartbeat(2, 1'100);
  EXPECT_EQ(only_id(one.build()), "rank-dead");
  JobBuilder two = eleventh_without_last(4, 2, 2);
  for (uint32_t rank : {2u, 3u}) two.heartbeat(rank, 1'100);
  EXPECT_EQ(only_id(two.build()), "rank-unreachable.host");
}

TEST(Thresholds, RanksOfAHostThatEndedApartAreDead) {
  for (const auto& [apart_ms, id] :
       {std::pair(3'000, "rank-unreachable.host"), std::pair(3'001, "rank-dead")}) {
    JobBuilder job = eleventh_without_last(6, 4, 2);
    job.heartbeat(4, 1'100);
    job.heartbeat(5, 1'100 + apart_ms);
    job.call(5, job.comm("own", {5}),
             {.called_ms = 1'100.0 + apart_ms,
              .gpu_start_ms = 1'100.0 + apart_ms,
              .gpu_end_ms = 1'100.0 + apart_ms});
    EXPECT_EQ(only_id(job.build()), id) << apart_ms;
  }
}

TEST(Thresholds, OneAndAHalfOfTheLargestGapIsSuspicious) {
  for (const auto& [waited_ms, id] : {std::pair(1'500, "0 findings"), std::pair(1'501, "never-joined")}) {
    JobBuilder job(2);
    job.steps(job.world(), 10, 0, 1'000);
    job.call(0, 0, {.called_ms = 9'500, .gpu_start_ms = 9'500});
    for (uint32_t rank = 0; rank < 2; ++rank) {
      job.heartbeat(rank, 9'500 + waited_ms);
      job.killed(rank);
      job.process(rank).liveness = Liveness::kRunning;
    }
    EXPECT_EQ(only_id(job.build()), id) << waited_ms;
  }
}

// Of the cycles through a rank the shortest says most: 0 waits for 1 and 2, 1 for 2, 2 for 0.
TEST(Thresholds, TheShortestCycleIsTold) {
  JobBuilder job(3);
  const uint32_t all = job.comm("all", {0, 1, 2}), late = job.comm("late", {1, 2}),
                 back = job.comm("back", {0, 2});
  for (const uint32_t comm : {all, late, back}) job.steps(comm, 10, 10.0 * comm, 100);
  job.call(0, all, {.called_ms = 1'100, .gpu_start_ms = 1'100});
  job.call(1, late, {.called_ms = 1'100, .gpu_start_ms = 1'100});
  job.call(2, back, {.called_ms = 1'100, .gpu_start_ms = 1'100});
  job.all_killed_at(30'000);
  const std::vector<Finding> findings = findings_of(job.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "cross-comm-deadlock");
  EXPECT_NE(findings[0].statement.find("ranks 0 and 2 wait for each other"), std::string::npos);
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
}

// 2 and 3 call a and b the other way round. What 2 called ahead, of all ranks, closes a second cycle, with 0.
TEST(Thresholds, ACycleOfWhatWasCalledFirstIsTheDeadlock) {
  JobBuilder job(4);
  const uint32_t all = job.comm("all", {0, 1, 2, 3}), pair = job.comm("pair", {0, 2});
  const uint32_t a = job.comm("a", {2, 3}), b = job.comm("b", {2, 3});
  for (const uint32_t comm : {all, pair, a, b}) job.steps(comm, 10, 10.0 * comm, 100);
  job.call(2, a, {.called_ms = 1'100, .gpu_start_ms = 1'100});
  job.call(3, b, {.called_ms = 1'105, .gpu_start_ms = 1'105});
  job.call(2, all, {.called_ms = 1'110, .gpu_start_ms = 1'110});
  job.call(1, all, {.called_ms = 1'110, .gpu_start_ms = 1'110});
  job.call(0, pair, {.called_ms = 1'120, .gpu_start_ms = 1'120});
  job.all_killed_at(30'000);
  const std::vector<Finding> findings = findings_of(job.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].statement.find("ranks 2 and 3 wait for each other"), std::string::npos);
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{3}) << findings[0].statement;
}

// A live run lacks nobody in its first half minute: processes start one after the other.
TEST(Thresholds, ARunThatHasOnlyBegunLacksNobody) {
  for (const auto& [age_ms, live, id] :
       {std::tuple(29'999, true, "0 findings"), std::tuple(30'000, true, "evidence-missing.files"),
        std::tuple(10'000, false, "evidence-missing.files")}) {
    JobBuilder job(2);
    job.steps(job.world(), 3, 0, 100);
    job.without(1);
    job.heartbeat(0, age_ms);
    job.killed(0);
    if (live) job.process(0).liveness = Liveness::kRunning;
    EXPECT_EQ(only_id(job.build()), id) << age_ms;
  }
}

// What a rank calls while its recording is switched off is in no file.
TEST(Thresholds, WhoseRecordingIsOffIsNotMissed) {
  for (const auto& [all, id] :
       {std::pair(true, "0 findings"), std::pair(false, "evidence-missing.incomplete")}) {
    for (const bool live : {true, false}) {
      JobBuilder job = eleventh_without_last(4, 3);
      for (uint32_t rank = all ? 0 : 3; rank < 4; ++rank)
        job.process(rank).row.modes = job.text("default 1, off 2");
      for (uint32_t rank = 0; rank < 4; ++rank) {
        if (live)
          job.process(rank).liveness = Liveness::kRunning;
        else
          job.process(rank).row.closed = 1;
      }
      EXPECT_EQ(only_id(job.build()), id) << live;
    }
  }
}

// Once it is on again, the rank is watched.
TEST(Thresholds, WhoseRecordingIsOnAgainIsMissed) {
  JobBuilder job = eleventh_without_last(4, 3);
  job.process(3).row.modes = job.text("default 1, off 2, default 3");
  EXPECT_EQ(only_id(job.build()), "never-joined");
}

// Sends and receives are counted from the first on: between two of which one did not record for a while they
// do not compare.
TEST(Thresholds, MessagesOfAProcessThatWasOffDoNotCompare) {
  for (const bool off : {true, false}) {
    JobBuilder job(2);
    job.steps(job.world(), 10, 0, 100);
    job.call(0, 0, {.func = "Send", .called_ms = 1000, .peer = 1});
    job.all_killed_at(30'000);
    for (uint32_t rank = 0; rank < 2; ++rank) job.process(rank).liveness = Liveness::kRunning;
    if (off) job.process(1).row.modes = job.text("default 1, off 2, default 3");
    EXPECT_EQ(only_id(job.build()), off ? "0 findings" : "never-joined");
  }
}

TEST(Thresholds, OfALiveRunItIsSaidOfNow) {
  for (const bool live : {true, false}) {
    JobBuilder job = eleventh_without_last(4, 3);
    for (uint32_t rank = 0; live && rank < 4; ++rank) job.process(rank).liveness = Liveness::kRunning;
    const std::vector<Finding> findings = findings_of(job.build());
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_NE(findings[0].statement.find(live ? " has not called " : " never called "), std::string::npos)
        << findings[0].statement;
  }
}

}  // namespace
}  // namespace lockstep::analysis::hang
