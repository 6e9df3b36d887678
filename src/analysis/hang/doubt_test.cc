// SPDX-License-Identifier: Apache-2.0
// Hosts run ahead of their GPUs: when a rank that calls nothing more is not the one to blame.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::hang {
extern const Analysis kAnalysis;
namespace {

using testing::JobBuilder;

// Nothing but heartbeats for long, then a kill of everybody.
Finding only_finding(JobBuilder& job) {
  job.all_killed_at(60'000);
  std::vector<Finding> findings;
  model::Job built = job.build();
  kAnalysis.run(built, findings);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Finding(FindingId{}) : findings.front();
}

// Eight ranks, tensor groups of two and data groups of four, each with ten steps behind it.
struct Grid {
  JobBuilder job{8};
  std::vector<uint32_t> tensor, data;

  explicit Grid(double gpu_ms) {
    for (uint32_t i = 0; i < 4; ++i) tensor.push_back(job.comm("tensor", {2 * i, 2 * i + 1}));
    for (uint32_t i = 0; i < 2; ++i) data.push_back(job.comm("data", {i, i + 2, i + 4, i + 6}));
    for (uint32_t comm : tensor) job.steps(comm, 10, 0, 100, gpu_ms);
    for (uint32_t comm : data) job.steps(comm, 10, 50, 100, gpu_ms);
  }
  // All enter the tensor group's eleventh operation; these do not come to the data group's.
  Finding without(const std::vector<uint32_t>& missing, double gpu_start_ms) {
    for (uint32_t rank = 0; rank < 8; ++rank) {
      bool comes = std::find(missing.begin(), missing.end(), rank) == missing.end();
      bool ends = comes && gpu_start_ms > 0;
      job.call(
          rank, tensor[rank / 2],
          {.called_ms = 1000, .gpu_start_ms = gpu_start_ms, .gpu_end_ms = ends ? gpu_start_ms + 0.5 : -1});
      if (comes) job.call(rank, data[rank % 2], {.called_ms = 1050});
    }
    return only_finding(job);
  }
};

TEST(Doubt, RanksThatStopTogetherBehindOneOperationMayStandInIt) {
  Finding finding = Grid(0).without({6, 7}, -1);
  EXPECT_EQ(id_text(finding.id), "evidence-missing.gpu-times");
  EXPECT_EQ(finding.ranks, (std::vector<int32_t>{6, 7}));
  EXPECT_EQ(finding.severity, Severity::kWarning);
}

TEST(Doubt, GpuTimesSettleIt) {
  Finding finding = Grid(0.5).without({6, 7}, 1000.1);
  EXPECT_EQ(class_of(finding.id), FindingClass::kStuckInGpu);
  EXPECT_EQ(finding.comm, "tensor");
}

TEST(Doubt, RanksBesideThemThatLeftNoFileExplainIt) {
  Grid grid(0);
  grid.job.without(0);
  Finding finding = grid.without({6, 7}, -1);
  EXPECT_EQ(class_of(finding.id), FindingClass::kRankUnreachable);
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{0});
}

TEST(Doubt, OneRankThatDoesNotExplainWhyOthersWaitIsNotBlamed) {
  // Rank 7 stops, and only the data group of odd ranks waits for it: what keeps the even ones is not known.
  Finding finding = Grid(0).without({7}, -1);
  EXPECT_EQ(id_text(finding.id), "evidence-missing.gpu-times");
}

TEST(Doubt, OneRankThatAllWaitForIsBlamed) {
  JobBuilder job(4);
  uint32_t world = job.world(), data = job.comm("data", {0, 1, 2, 3});
  job.steps(world, 10, 0, 100, 0);
  job.steps(data, 11, 50, 100, 0);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    if (rank != 3) job.call(rank, world, {.called_ms = 1100});
  }
  Finding finding = only_finding(job);
  EXPECT_EQ(class_of(finding.id), FindingClass::kNeverJoined);
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{3});
}

// A pipeline of ranks 0, 1 and 2. Rank 2 does not send back to rank 1, which has called its receive and then
// sends to rank 0. Rank 0 has called that receive, and does not come to the operation with rank 3.
TEST(Doubt, WhoStandsBehindWhatAnotherHasNotCalledIsNotBlamed) {
  for (const bool has_received : {true, false}) {
    JobBuilder job(5);
    const uint32_t pipeline = job.comm("pipeline", {0, 1, 2});
    const uint32_t data = job.comm("data", {0, 3}), other = job.comm("data", {2, 4});
    job.steps(data, 10, 0, 100, 0);
    job.steps(other, 10, 50, 100, 0);
    const auto back = [&](uint32_t from, double ms) {
      job.call(from, pipeline, {.func = "Send", .called_ms = ms, .peer = static_cast<int>(from) - 1});
    };
    const auto receive = [&](uint32_t to, double ms) {
      job.call(to, pipeline, {.func = "Recv", .called_ms = ms, .peer = static_cast<int>(to) + 1});
    };
    receive(1, 1000);
    back(1, 1001);
    if (has_received) receive(0, 1002);
    job.call(3, data, {.called_ms = 1050});
    job.call(4, other, {.called_ms = 1050});
    const Finding finding = only_finding(job);
    const std::string follows =
        "rank 0 calls nothing more either: an earlier call may be queued behind that operation";
    EXPECT_EQ(std::count(finding.evidence.begin(), finding.evidence.end(), follows), has_received);
    if (has_received) {
      EXPECT_EQ(id_text(finding.id), "never-joined");
      EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
      EXPECT_NE(finding.statement.find("4 ranks have waited"), std::string::npos) << finding.statement;
    } else {
      EXPECT_EQ(id_text(finding.id), "evidence-missing.gpu-times");
      EXPECT_EQ(finding.ranks, (std::vector<int32_t>{0, 2})) << "rank 0 has not come there";
    }
  }
}

// Two stages of two ranks, whose records begin somewhere, as a ring leaves them. Rank 2 does not come to the
// operation that rank 3 calls before it sends to rank 1; rank 0 does not come to what rank 1 calls after its
// receive. `sent`: of what rank 3 has sent to rank 1, the first sends are gone, too.
TEST(Doubt, InARingSendsAndReceivesAreCountedFromWhatBothEndsHaveCalled) {
  for (const int sent : {3, 4}) {
    JobBuilder job(4);
    const uint32_t world = job.world(), first = job.comm("data", {0, 1}), second = job.comm("data", {2, 3});
    const uint32_t pipeline = job.comm("pipeline", {1, 3});
    const auto send = [&](double ms) { job.call(3, pipeline, {.func = "Send", .called_ms = ms, .peer = 0}); };
    const auto receive = [&](double ms) {
      job.call(1, pipeline, {.func = "Recv", .called_ms = ms, .peer = 1});
    };
    job.steps(first, 10, 20, 100, 0);
    job.steps(second, 10, 20, 100, 0);
    for (int step = 10 - sent; step < 10; ++step) send(100 * step + 10);
    for (int step = 5; step < 10; ++step) receive(100 * step + 10);
    job.steps(world, 10, 90, 100, 0);
    receive(1010);
    for (const uint32_t rank : {0U, 1U}) job.call(rank, first, {.called_ms = 1020});
    job.call(1, first, {.called_ms = 1030});
    job.call(3, second, {.called_ms = 1020});
    send(1025);
    for (uint32_t rank = 0; rank < 4; ++rank) job.process(rank).lost = 1000;
    const Finding finding = only_finding(job);
    EXPECT_EQ(id_text(finding.id), "never-joined");
    EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
  }
}

// Rank 0 differs from ranks 1 and 4 and goes on to send to rank 3, which has called that receive and does not
// come to what rank 2 calls next.
TEST(Doubt, WhoStandsBehindOperationsThatDifferIsNotBlamed) {
  for (const bool differs : {true, false}) {
    JobBuilder job(5);
    const uint32_t first = job.comm("data", {0, 1, 4}), second = job.comm("data", {2, 3});
    const uint32_t pipeline = job.comm("pipeline", {0, 3});
    job.steps(first, 10, 0, 100, 0);
    job.steps(second, 10, 50, 100, 0);
    for (const uint32_t rank : {0U, 1U, 4U})
      job.call(rank, first, {.called_ms = 1000, .bytes = rank == 0 && differs ? 2u << 20 : 1u << 20});
    job.call(0, pipeline, {.func = "Send", .called_ms = 1010, .peer = 1});
    job.call(3, pipeline, {.func = "Recv", .called_ms = 1010, .peer = 0});
    job.call(2, second, {.called_ms = 1050});
    const Finding finding = only_finding(job);
    EXPECT_EQ(finding.ranks, std::vector<int32_t>{differs ? 0 : 3});
    EXPECT_EQ(class_of(finding.id) == FindingClass::kJoinedOtherOp, differs) << finding.statement;
  }
}

// Ranks 0 to 3 stop together. Those of a tensor group stand in one operation, and sends and receives connect
// the groups.
TEST(Doubt, RanksThatStopTogetherMayStandBehindOneOperationByWayOfOthers) {
  for (const bool connected : {true, false}) {
    JobBuilder job(8);
    const uint32_t tensor[] = {job.comm("tensor", {0, 1}), job.comm("tensor", {2, 3})};
    const uint32_t pipelines[] = {job.comm("pipeline", {0, 2}), job.comm("pipeline", {1, 3})};
    const uint32_t world = job.world();
    for (uint32_t comm : tensor) job.steps(comm, 10, 0, 100, 0);
    job.steps(world, 10, 50, 100, 0);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      job.call(rank, tensor[rank / 2], {.called_ms = 1000});
      if (connected)
        job.call(rank, pipelines[rank % 2],
                 {.func = rank < 2 ? "Send" : "Recv", .called_ms = 1010, .peer = rank < 2 ? 1 : 0});
      job.call(rank + 4, world, {.called_ms = 1050});
    }
    const Finding finding = only_finding(job);
    EXPECT_EQ(id_text(finding.id), connected ? "evidence-missing.gpu-times" : "never-joined");
    EXPECT_EQ(finding.ranks, (std::vector<int32_t>{0, 1, 2, 3}));
  }
}

// Ranks 1 and 7 do not come to the data group's operation. Rank 7 was busy until `end_ms`; `leaves`: it left
// in order.
std::vector<Finding> beside_an_end(double end_ms, bool leaves) {
  Grid grid(0);
  JobBuilder& job = grid.job;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    if (rank != 7) job.call(rank, grid.tensor[rank / 2], {.called_ms = 1000});
    if (rank != 1 && rank != 7) job.call(rank, grid.data[rank % 2], {.called_ms = 1050});
  }
  job.call(7, job.comm("own", {7}), {.called_ms = end_ms - 10});
  job.all_killed_at(60'000);
  if (leaves) {
    for (const uint32_t comm : {grid.tensor[3], grid.data[1]}) job.finalized(comm, 7, end_ms);
  } else {
    job.heartbeat(7, end_ms);
  }
  std::vector<Finding> findings;
  const model::Job built = job.build();
  kAnalysis.run(built, findings);
  return findings;
}

TEST(Doubt, WhoStopsOnceAnotherHasLeftMayStandBehindIt) {
  const std::vector<Finding> findings = beside_an_end(960, true);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "never-joined.finished");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{7});
}

TEST(Doubt, WhoStopsOnceAnotherHasDiedMayStandBehindIt) {
  const std::vector<Finding> findings = beside_an_end(1'100, false);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "rank-dead");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{7});
}

TEST(Doubt, WhoStoppedLongBeforeAnotherDiedIsNamedBesideIt) {
  const std::vector<Finding> findings = beside_an_end(5'000, false);
  const auto names_1 = [](const Finding& finding) { return finding.ranks == std::vector<int32_t>{1}; };
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), names_1));
}

}  // namespace
}  // namespace lockstep::analysis::hang
