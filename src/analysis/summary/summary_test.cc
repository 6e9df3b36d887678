// SPDX-License-Identifier: Apache-2.0
#include "analysis/summary/summary.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/testing/synthetic_run.h"

namespace lockstep::analysis::summary {
namespace {

TEST(Summary, Percentiles) {
  std::vector<int64_t> values(100);
  std::iota(values.rbegin(), values.rend(), 1);
  Durations durations = summarize(values);
  EXPECT_EQ(durations.count, 100u);
  EXPECT_EQ(durations.min_ns, 1);
  EXPECT_EQ(durations.p50_ns, 50);
  EXPECT_EQ(durations.p99_ns, 99);
  EXPECT_EQ(durations.max_ns, 100);
  EXPECT_EQ(durations.avg_ns, 50.5);
  std::vector<int64_t> one = {7};
  EXPECT_EQ(summarize(one).p99_ns, 7);
  EXPECT_EQ(summarize({}).count, 0u);
}

TEST(Summary, AddsUpOverProcesses) {
  model::testing::SyntheticRun run({.ranks = 4, .ops = 20});
  Summary summary;
  uint64_t ops = 0;
  for (size_t i = 0; i < run.processes(); ++i) {
    model::Trace trace;
    ASSERT_TRUE(run.load(i, trace));
    ops += trace.ops.size();
    summary.add(trace);
  }
  SummaryFigures figures = summary.figures();
  ASSERT_EQ(figures.ranks.size(), 4u);
  EXPECT_EQ(figures.ranks[3].rank, 3);
  uint64_t counted = 0, by_rank = 0;
  for (const OpFigures& op : figures.ops) {
    counted += op.ops;
    EXPECT_LE(op.gpu.min_ns, op.gpu.p50_ns);
    EXPECT_LE(op.gpu.p50_ns, op.gpu.p99_ns);
    EXPECT_LE(op.gpu.p99_ns, op.gpu.max_ns);
  }
  for (const RankFigures& rank : figures.ranks) {
    by_rank += rank.ops;
    EXPECT_LE(rank.busy, 1.0);
  }
  EXPECT_EQ(counted, ops);
  EXPECT_EQ(by_rank, ops);
}

}  // namespace
}  // namespace lockstep::analysis::summary
