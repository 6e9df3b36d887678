// SPDX-License-Identifier: Apache-2.0
#include "analysis/overlap/overlap.h"

#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::overlap {
extern const Analysis kAnalysis;
namespace {

using testing::at_ms;
using testing::JobBuilder;

model::GpuStep step(int64_t number, double begin_ms, double computing_ms, double communicating_ms,
                    double exposed_ms) {
  return {.number = number,
          .begin_ns = at_ms(begin_ms),
          .end_ns = at_ms(begin_ms + 10),
          .is_whole = true,
          .devices = 1,
          .computing_ns = static_cast<int64_t>(computing_ms * 1e6),
          .communicating_ns = static_cast<int64_t>(communicating_ms * 1e6),
          .exposed_ns = static_cast<int64_t>(exposed_ms * 1e6),
          .copying_ns = 500'000};
}

// Two steps of 10 ms; communication of 6 ms, of which `exposed` by rank.
model::Job job(const std::vector<double>& exposed_ms) {
  JobBuilder builder(static_cast<uint32_t>(exposed_ms.size()));
  const uint32_t world = builder.world();
  builder.steps(world, 4, 1, 5);
  for (uint32_t rank = 0; rank < exposed_ms.size(); ++rank) {
    model::JobProcess& process = builder.process(rank);
    process.gpu_steps = {step(0, 0, 5, 6, exposed_ms[rank]), step(1, 10, 3, 6, exposed_ms[rank])};
    process.exposed.push_back({.member = builder.member(world, rank),
                               .func = builder.text("AllReduce"),
                               .communicating_ns = 12'000'000,
                               .exposed_ns = static_cast<int64_t>(2e6 * exposed_ms[rank])});
  }
  return builder.build();
}

std::vector<Finding> findings(const model::Job& job) {
  std::vector<Finding> out;
  kAnalysis.run(job, out);
  return out;
}

TEST(Overlap, AveragesStepsAndSplitsThem) {
  const std::vector<RankOverlap> ranks = measure(job({3, 4}));
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].steps, 2u);
  EXPECT_TRUE(ranks[0].are_whole);
  EXPECT_DOUBLE_EQ(ranks[0].computing_ns, 4e6);
  EXPECT_DOUBLE_EQ(ranks[0].hidden_ns(), 3e6);
  EXPECT_DOUBLE_EQ(ranks[1].exposed_share(), 0.4);
  EXPECT_DOUBLE_EQ(ranks[1].idle_ns, 10e6 - 4e6 - 4e6 - 0.5e6);
}

TEST(Overlap, AStepThatWasNotSeenToItsEndCountsOnlyWhereThereIsNoOther) {
  model::Job with_open = job({3, 3});
  for (model::JobProcess& process : with_open.processes) process.gpu_steps[1].is_whole = false;
  EXPECT_EQ(measure(with_open)[0].steps, 1u);
  EXPECT_DOUBLE_EQ(measure(with_open)[0].computing_ns, 5e6);
  for (model::JobProcess& process : with_open.processes) process.gpu_steps.erase(process.gpu_steps.begin());
  EXPECT_EQ(measure(with_open)[0].steps, 1u);
  EXPECT_FALSE(measure(with_open)[0].are_whole);
  EXPECT_DOUBLE_EQ(measure(with_open)[0].computing_ns, 3e6);
}

TEST(Overlap, SpeaksOfWhatEvenTheLuckiestRankCannotHide) {
  const std::vector<Finding> found = findings(job({5, 2.5, 4}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(id_text(found[0].id), "exposed-communication");
  EXPECT_EQ(found[0].severity, Severity::kNote) << "it may well be how the program is";
  EXPECT_NE(found[0].statement.find("25 % or more"), std::string::npos) << found[0].statement;
  EXPECT_NE(found[0].statement.find("on rank 1"), std::string::npos) << found[0].statement;
  ASSERT_TRUE(found[0].effect);
  EXPECT_EQ(found[0].effect->value, 2.5e6);
  EXPECT_EQ(found[0].effect->high, 5e6);
  EXPECT_NE(found[0].evidence.at(1).find("100 % of it is AllReduce on world"), std::string::npos)
      << found[0].evidence[1];
}

TEST(Overlap, IsSilentWhereSomeRankHidesMostOfItOrOneRankIsAlone) {
  EXPECT_TRUE(findings(job({5, 1.9, 4})).empty()) << "the others wait for somebody";
  EXPECT_TRUE(findings(job({6})).empty());
  model::Job unknown = job({5, 5});
  for (model::JobProcess& process : unknown.processes) process.gpu_steps.clear();
  EXPECT_TRUE(findings(unknown).empty());
  EXPECT_TRUE(measure(unknown).empty());
}

}  // namespace
}  // namespace lockstep::analysis::overlap
