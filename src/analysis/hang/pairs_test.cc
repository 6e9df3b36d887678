// SPDX-License-Identifier: Apache-2.0
// Sends and receives that both ends have called: who waits for whose kernel.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::hang {
extern const Analysis kAnalysis;
namespace {

using testing::JobBuilder;

// Each step, rank 2 sends to 1, and 1 to 0. In the eleventh the kernel of rank 2's send has not begun.
Finding pipeline_without_last_kernel() {
  JobBuilder job(3);
  const uint32_t pipe = job.world("pipe");
  for (int step = 0; step < 11; ++step) {
    const double ms = 100.0 * step;
    const bool stops = step == 10;
    const auto call = [&](uint32_t rank, const char* func, int peer, double start_ms) {
      job.call(rank, pipe,
               {.func = func,
                .called_ms = ms + (rank == 0 ? 0 : 5),
                .peer = peer,
                .gpu_start_ms = start_ms,
                .gpu_end_ms = stops ? -1 : start_ms + 1});
    };
    call(2, "Send", 1, stops ? -1 : ms + 6);
    call(1, "Recv", 2, ms + 6);
    call(1, "Send", 0, stops ? -1 : ms + 8);
    call(0, "Recv", 1, ms + 6);
  }
  job.all_killed_at(60'000);
  std::vector<Finding> findings;
  const model::Job built = job.build();
  kAnalysis.run(built, findings);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Finding(FindingId{}) : findings.front();
}

TEST(Pairs, AReceiveWaitsForItsOwnSend) {
  const Finding finding = pipeline_without_last_kernel();
  EXPECT_EQ(class_of(finding.id), FindingClass::kStuckInGpu);
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
  EXPECT_EQ(finding.statement,
            "the kernel of transfer 10 from rank 2 to rank 1 on pipe (Recv) has not begun on rank 2 (GPU 2 "
            "of node0, pid 1002); 2 ranks have waited 59.0 s for it");
}

// Each step, rank 3 sends to 2, that to 1, and that to 0. Rank 3 is gone without a file: the kernel of rank
// 2's receive runs, and that of its send stands behind.
TEST(Pairs, WhoWaitsForARankWithoutAFileIsNotTheCause) {
  JobBuilder job(4);
  const uint32_t pipe = job.world("pipe");
  for (int step = 0; step < 11; ++step) {
    const double ms = 100.0 * step;
    const bool stops = step == 10;
    for (int rank = 2; rank >= 0; --rank) {
      const auto call = [&](const char* func, int peer, double start_ms) {
        job.call(static_cast<uint32_t>(rank), pipe,
                 {.func = func,
                  .called_ms = ms + 5,
                  .peer = peer,
                  .gpu_start_ms = start_ms,
                  .gpu_end_ms = stops ? -1 : start_ms + 1});
      };
      call("Recv", rank + 1, ms + 6);
      if (rank > 0) call("Send", rank - 1, stops ? -1 : ms + 8);
    }
  }
  job.without(3);
  job.all_killed_at(60'000);
  std::vector<Finding> findings;
  const model::Job built = job.build();
  kAnalysis.run(built, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "rank-unreachable") << findings[0].statement;
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{3});
}

// Each step, rank 2 sends to 0 and rank 3 to 1; ranks 2 and 3 meet in a pair; all in the world. In the
// eleventh rank 2 comes to the world first. What it sends rank 0 waits behind that as well, and so does the
// pair's operation, in which rank 3 is.
TEST(Pairs, WhoBrokeTheOrderIsNamedAndNotWhoWaitedForItsMessage) {
  JobBuilder job(4);
  const uint32_t world = job.world(), pipe = job.world("pipe"), pair = job.comm("pair", {2, 3});
  const auto call = [&](uint32_t rank, uint32_t comm, double ms, bool runs, bool ends, int peer = -1) {
    job.call(rank, comm,
             {.func = peer < 0   ? "AllReduce"
                      : rank < 2 ? "Recv"
                                 : "Send",
              .called_ms = ms,
              .peer = peer,
              .gpu_start_ms = runs ? ms + 0.1 : -1,
              .gpu_end_ms = ends ? ms + 1 : -1});
  };
  for (int step = 0; step <= 10; ++step) {
    const double ms = 100.0 * step;
    const bool goes_on = step < 10;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const int peer = static_cast<int>(rank ^ 2);
      const bool breaks = !goes_on && rank == 2, holds = !goes_on && rank == 3;
      if (breaks) call(rank, world, ms, true, false);
      call(rank, pipe, ms + 5, !breaks, goes_on || rank == 1 || rank == 3, peer);
      if (rank >= 2) call(rank, pair, ms + 10, !breaks, goes_on);
      if (!breaks) call(rank, world, ms + 20, goes_on || (!holds && rank == 1), goes_on);
    }
  }
  job.all_killed_at(60'000);
  std::vector<Finding> findings;
  const model::Job built = job.build();
  kAnalysis.run(built, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "cross-comm-deadlock");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2}) << findings[0].statement;
}

// Both send first: the kernels of the sends run, those of the receives stand behind them.
TEST(Pairs, SendsThatWaitForEachOthersReceives) {
  JobBuilder job(2);
  const uint32_t pipe = job.world("pipe");
  for (int step = 0; step <= 10; ++step) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const double ms = 100.0 * step;
      const int peer = static_cast<int>(1 - rank);
      const bool goes_on = step < 10;
      job.call(rank, pipe,
               {.func = "Send",
                .called_ms = ms,
                .peer = peer,
                .gpu_start_ms = ms + 1,
                .gpu_end_ms = goes_on ? ms + 2 : -1});
      job.call(rank, pipe,
               {.func = "Recv",
                .called_ms = ms + 3,
                .peer = peer,
                .gpu_start_ms = goes_on ? ms + 4 : -1,
                .gpu_end_ms = goes_on ? ms + 5 : -1});
    }
  }
  job.all_killed_at(60'000);
  std::vector<Finding> findings;
  const model::Job built = job.build();
  kAnalysis.run(built, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "cross-comm-deadlock.send-receive");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{0, 1}));
}

// Rank 0 runs a send whose other end, of which a ring recycled the beginning, may not have been called.
TEST(Pairs, ARunningSendIsNotStuckWhereItsOtherEndIsNotKnown) {
  for (const bool is_whole : {true, false}) {
    JobBuilder job(4);
    const uint32_t pipe = job.comm("pipe", {0, 1}), data = job.comm("data", {1, 2, 3});
    job.steps(data, 10, 0, 100);
    for (int step = 0; step < 11; ++step) {
      const double ms = 100.0 * step + 10;
      const double end_ms = step == 10 ? -1 : ms + 2;
      job.call(0, pipe,
               {.func = "Send", .called_ms = ms, .peer = 1, .gpu_start_ms = ms + 1, .gpu_end_ms = end_ms});
      job.call(1, pipe,
               {.func = "Recv", .called_ms = ms, .peer = 0, .gpu_start_ms = ms + 1, .gpu_end_ms = end_ms});
    }
    for (const uint32_t rank : {2U, 3U}) job.call(rank, data, {.called_ms = 1000, .gpu_start_ms = 1001});
    if (!is_whole) job.process(1).lost = 100;
    job.all_killed_at(60'000);
    std::vector<Finding> findings;
    const model::Job built = job.build();
    kAnalysis.run(built, findings);
    const bool is_stuck = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return class_of(finding.id) == FindingClass::kStuckInGpu;
    });
    EXPECT_EQ(is_stuck, is_whole);
  }
}

}  // namespace
}  // namespace lockstep::analysis::hang
