// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/cost/resampling.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::analysis::straggler {
namespace {

TEST(Resampler, KnowsAConstantForCertain) {
  for (size_t steps : {1u, 9u, 100u}) {
    const Interval total = Resampler(steps).total(std::vector<float>(steps, 2));
    EXPECT_DOUBLE_EQ(total.middle, 2.0 * static_cast<double>(steps));
    EXPECT_DOUBLE_EQ(total.low, total.middle);
    EXPECT_DOUBLE_EQ(total.high, total.middle);
  }
}

// Of 64 blocks with one late step each in half of them, binomial: 32 +- 4 * 1.96.
TEST(Resampler, IsAsUnsureAsBlocksDiffer) {
  constexpr size_t kSteps = 64 * 64;
  const Resampler resampler(kSteps);
  EXPECT_EQ(resampler.block(), 64u);
  std::vector<float> values(kSteps);
  for (size_t i = 0; i < kSteps; i += 128) values[i] = 1;
  const Interval total = resampler.total(values);
  EXPECT_EQ(total.middle, 32);
  EXPECT_NEAR(total.low, 32 - 7.8, 2);
  EXPECT_NEAR(total.high, 32 + 7.8, 2);
}

TEST(Resampler, HasNoLowerBoundForOneDelay) {
  std::vector<float> values(100);
  values[50] = 1;
  const Interval total = Resampler(100).total(values);
  EXPECT_EQ(total.low, 0);
  EXPECT_EQ(total.middle, 1);
  EXPECT_GE(total.high, 2);
}

TEST(Resampler, DrawsTheSameEachTime) {
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  const Interval a = Resampler(1000).total(values), b = Resampler(1000).total(values);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

}  // namespace
}  // namespace lockstep::analysis::straggler
