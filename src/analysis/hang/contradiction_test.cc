// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::hang {
extern const Analysis kAnalysis;
namespace {

using testing::JobBuilder;

// Rank 2 gathers where the others reduce, and the job goes on. Its AllReduces are numbered as if it had
// reduced there.
std::vector<Finding> mismatch(bool skips_a_number, bool breaks_off = false) {
  constexpr uint32_t kRanks = 4;
  JobBuilder job(kRanks);
  const uint32_t world = job.world();
  job.steps(world, 6, 0, 10);
  for (uint32_t rank = 0; rank < kRanks; ++rank)
    job.call(rank, world,
             {.func = rank == 2 ? "AllGather" : "AllReduce",
              .called_ms = 70,
              .gpu_start_ms = 71,
              .gpu_end_ms = 72});
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (uint32_t i = 0; i < 10; ++i) {
      const double at = 80 + i * 10.0;
      const uint32_t seq = 7 + i - (rank == 2 && !skips_a_number);
      job.call(rank, world, {.called_ms = at, .gpu_start_ms = at + 1, .gpu_end_ms = at + 2, .seq = seq});
    }
  }
  if (breaks_off) job.all_killed_at(180);
  std::vector<Finding> findings;
  kAnalysis.run(job.build(), findings);
  return findings;
}

TEST(Contradiction, ANumberThatNobodyTookLeavesItOpen) {
  const auto findings = mismatch(true);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "evidence-missing.contradiction");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_TRUE(findings[0].ranks.empty());
  EXPECT_EQ(findings[0].statement,
            "the record of rank 2 contradicts itself, so Lockstep cannot tell whether operation 6 of world "
            "is the same on all ranks: rank 2 called AllGather of 1 MiB ncclFloat32, rank 0 AllReduce of 1 "
            "MiB ncclFloat32");
  EXPECT_EQ(findings[0].advice,
            "Compare what the code does on rank 2 and on rank 0 before this call; record the run again.");
  EXPECT_EQ(findings[0].evidence.front(),
            "NCCL numbered the AllReduce of operation 7 as 7, where 6 should follow, and no record was lost");
}

TEST(Contradiction, IsToldBeforeTheEndOfARunThatBrokeOff) {
  const auto findings = mismatch(true, true);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(id_text(findings[0].id), "evidence-missing.contradiction");
  EXPECT_EQ(id_text(findings[1].id), "evidence-missing.broke-off");
  EXPECT_GE(findings[0].weight, findings[1].weight);
}

TEST(Contradiction, NumbersThatFollowNameTheRank) {
  const auto findings = mismatch(false);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "joined-other-op");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
}

}  // namespace
}  // namespace lockstep::analysis::hang
