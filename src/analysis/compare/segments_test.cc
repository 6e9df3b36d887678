// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/segments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lockstep::analysis::compare {
namespace {

std::vector<float> run(uint64_t seed, const std::vector<std::pair<size_t, double>>& levels,
                       double carried = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  double off = 0;
  std::vector<float> values;
  for (const auto& [count, level] : levels) {
    for (size_t i = 0; i < count; ++i) {
      off = carried * off + std::sqrt(1 - carried * carried) * normal(random);
      values.push_back(static_cast<float>(level * (1 + 0.05 * off)));
    }
  }
  return values;
}

TEST(Parts, FindWhereALevelChanges) {
  double off = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto found = parts(run(seed, {{210, 100}, {190, 110}}));
    ASSERT_EQ(found.size(), 2U) << seed;
    EXPECT_NEAR(static_cast<double>(found[1].begin), 210, 10) << seed;
    off += std::abs(static_cast<double>(found[1].begin) - 210) / 20;
    EXPECT_NEAR(found[0].mean, 100, 2);
    EXPECT_NEAR(found[1].mean, 110, 2);
  }
  EXPECT_LT(off, 3) << "on average, where a change is twice what steps vary by";
}

TEST(Parts, FindALevelThatComesAndGoes) {
  const auto found = parts(run(3, {{100, 100}, {60, 130}, {140, 100}}));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NEAR(static_cast<double>(found[1].begin), 100, 3);
  EXPECT_NEAR(static_cast<double>(found[2].begin), 160, 3);
  EXPECT_EQ(found[2].end, 300U);
}

TEST(Parts, FindAChangeNearTheEnd) {
  const auto found = parts(run(4, {{280, 100}, {20, 130}}));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(static_cast<double>(found[1].begin), 280, 2);
}

TEST(Parts, DoNotCutWhatKeepsItsLevel) {
  int cut = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    cut += parts(run(seed, {{200, 100}})).size() > 1;
    cut += parts(run(seed, {{200, 100}}, 0.5)).size() > 1;
  }
  EXPECT_LE(cut, 12) << "of 600";
}

TEST(Parts, AreNotCutByOutliers) {
  std::vector<float> values = run(5, {{200, 100}});
  for (size_t i : {20U, 90U, 91U, 150U}) values[i] *= 20;
  EXPECT_EQ(parts(values).size(), 1U);
}

TEST(Parts, OfNothingAndOfFewAreOne) {
  EXPECT_EQ(parts({}).size(), 1U);
  EXPECT_EQ(parts(std::vector<float>{1}).size(), 1U);
  EXPECT_EQ(parts(std::vector<float>(100, 3.0F)).size(), 1U);
  const std::vector<float> few = {1, 1, 1, 9, 9, 9};
  EXPECT_EQ(parts(few).size(), 1U);
}

TEST(Parts, OfExactLevelsAreExact) {
  std::vector<float> values(40, 1.0F);
  values.resize(70, 2.0F);
  const auto found = parts(values);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].begin, 40U);
}

TEST(Kuiper, IsThatOfTables) {
  EXPECT_NEAR(kuiper(1.747), 0.05, 1e-3);
  EXPECT_NEAR(kuiper(2.001), 0.01, 1e-3);
  EXPECT_EQ(kuiper(0), 1);
}

TEST(Kolmogorov, IsThatOfTables) {
  EXPECT_NEAR(kolmogorov(1.358), 0.05, 1e-3);
  EXPECT_NEAR(kolmogorov(1.628), 0.01, 1e-3);
  EXPECT_EQ(kolmogorov(0), 1);
}

}  // namespace
}  // namespace lockstep::analysis::compare
