// SPDX-License-Identifier: Apache-2.0
// Sends and receives that both ends have called: who waits for whose kernel.
#include <gtest/gtest.h>

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
  return findings.empty() ? Finding{} : findings.front();
}

TEST(Pairs, AReceiveWaitsForItsOwnSend) {
  const Finding finding = pipeline_without_last_kernel();
  EXPECT_EQ(finding.finding_class, FindingClass::kStuckInGpu);
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
  EXPECT_EQ(finding.statement,
            "the kernel of transfer 10 from rank 2 to rank 1 on pipe (Recv) has not begun on rank 2 (GPU 2 "
            "of node0, pid "
            "1002); 2 ranks wait for it, for 59.0 s");
}

}  // namespace
}  // namespace lockstep::analysis::hang
