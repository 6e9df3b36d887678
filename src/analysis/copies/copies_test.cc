// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::copies {
extern const Analysis kAnalysis;
namespace {

using testing::JobBuilder;

std::vector<Finding> findings(const std::vector<model::PageableCopies>& by_rank) {
  JobBuilder builder(static_cast<uint32_t>(by_rank.size()));
  builder.steps(builder.world(), 4, 1, 5);
  for (uint32_t rank = 0; rank < by_rank.size(); ++rank) builder.process(rank).pageable = by_rank[rank];
  std::vector<Finding> out;
  kAnalysis.run(builder.build(), out);
  return out;
}

model::PageableCopies copies(int64_t usual_ms) {
  return {.copies = 80,
          .bytes = 10'000'000'000,
          .busy_ns = 1'000'000'000,
          .alone_ns = 900'000'000,
          .usual_ns = usual_ms * 1'000'000,
          .length_ns = 2'000'000'000};
}

TEST(Copies, NamesRanksWhosePageableMemoryTakesTime) {
  const std::vector<Finding> found = findings({copies(100), copies(99), copies(900), {}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, FindingId::kSlowLinkPageable);
  EXPECT_EQ(found[0].ranks, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(
      found[0].statement,
      "ranks 0 and 2: copies of host memory that is not pinned usually take up to 45 % of the time, while "
      "no kernel runs");
  EXPECT_EQ(found[0].weight, 900e6);
  ASSERT_EQ(found[0].evidence.size(), 3u);
  EXPECT_NE(found[0].evidence[0].find(
                "80 copies of 9.31 GiB in all at 10.0 GB/s, 900 ms of 2.00 s while no kernel ran"),
            std::string::npos)
      << found[0].evidence[0];
}

TEST(Copies, SaysNothingOfALittle) {
  EXPECT_TRUE(findings({copies(99), {}}).empty());
  EXPECT_TRUE(findings({{}, {}}).empty());
}

TEST(Copies, ListsTheWorstOfMany) {
  const std::vector<Finding> found = findings(std::vector<model::PageableCopies>(9, copies(500)));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ranks.size(), 9u);
  EXPECT_EQ(found[0].evidence.size(), 6u);
  EXPECT_EQ(found[0].evidence[4], "and 5 processes more");
}

}  // namespace
}  // namespace lockstep::analysis::copies
