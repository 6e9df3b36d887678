// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/bandwidth/rates.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::bandwidth {

extern const Analysis kAnalysis;

namespace {

using testing::JobBuilder;

// Pairs (0 1) (2 3) ...: all-reduces of 64 MiB that take `ms` from the last arrival, rank 1 of each always 5 ms late.
JobBuilder pairs(uint32_t count, const std::vector<double>& ms, uint32_t per_host = 0) {
  JobBuilder builder(count * 2, per_host);
  for (uint32_t pair = 0; pair < count; ++pair) {
    const uint32_t comm = builder.comm("tp" + std::to_string(pair), {pair * 2, pair * 2 + 1});
    for (uint32_t i = 0; i < 20; ++i) {
      const double at = i * 50.0;
      const double end = at + 6 + ms[pair] * (1 + 0.01 * (i % 3));
      builder.call(pair * 2, comm,
                   {.called_ms = at, .bytes = 64 << 20, .gpu_start_ms = at + 1, .gpu_end_ms = end});
      builder.call(pair * 2 + 1, comm,
                   {.called_ms = at, .bytes = 64 << 20, .gpu_start_ms = at + 6, .gpu_end_ms = end});
    }
  }
  return builder;
}

TEST(Bandwidth, CountsFromTheLastArrivalOn) {
  const Rates rates = measure(pairs(1, {1.0}).build());
  ASSERT_EQ(rates.rates.size(), 1u);
  const Rate& rate = rates.rates[0];
  EXPECT_EQ(rate.ops, 20u);
  EXPECT_EQ(rates.untimed, 0u);
  EXPECT_EQ(rate.size_from, uint64_t{64} << 20);
  EXPECT_NEAR(rate.algbw.middle, (64 << 20) / 1.01e6, 0.1);
  EXPECT_NEAR(rate.busbw.middle, rate.algbw.middle, 1e-9) << "2 (n - 1) / n is 1 for two ranks";
  EXPECT_EQ(rate.error, 0) << "one clock";
}

TEST(Bandwidth, OperationsWithoutGpuTimesHaveNone) {
  JobBuilder builder(2);
  builder.steps(builder.world(), 5, 0, 10, 0);
  const Rates rates = measure(builder.build());
  EXPECT_TRUE(rates.rates.empty());
  EXPECT_EQ(rates.ops, 5u);
  EXPECT_EQ(rates.untimed, 5u);
}

TEST(Bandwidth, NamesThePairThatIsSlowerThanItsEquals) {
  std::vector<Finding> findings;
  kAnalysis.run(pairs(4, {1, 1.02, 2, 0.99}).build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "slow-link.intra-host");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(findings[0].comm, "tp2");
}

TEST(Bandwidth, SaysNothingOfEqualsOfTwoOrOfTheNetwork) {
  std::vector<Finding> findings;
  kAnalysis.run(pairs(4, {1, 1.02, 1.1, 0.99}).build(), findings);
  kAnalysis.run(pairs(2, {1, 2}).build(), findings);
  kAnalysis.run(pairs(4, {1, 1, 2, 1}, 1).build(), findings);
  EXPECT_TRUE(findings.empty());
}

TEST(Fit, FindsStartUpTimeAndBandwidth) {
  std::vector<Point> points;
  for (double bytes = 8; bytes < 1e9; bytes *= 4) points.push_back({bytes, 10'000 + bytes / 300, 10});
  Fit line;
  ASSERT_TRUE(fit(points, line));
  EXPECT_NEAR(line.alpha_ns, 10'000, 1);
  EXPECT_NEAR(line.beta_gbps, 300, 0.1);
  EXPECT_LE(line.beta_low_gbps, line.beta_gbps);
  points.resize(2);
  EXPECT_FALSE(fit(points, line));
}

}  // namespace
}  // namespace lockstep::analysis::bandwidth
