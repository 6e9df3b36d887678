// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace lockstep::analysis::compare {
namespace {

// Steps of a run, of which each keeps a share of how far the one before was off.
class Steps {
 public:
  explicit Steps(uint64_t seed) : random_(seed) {}
  std::vector<float> draw(size_t n, double mean, double carried, double spread = 0.1, double stalls = 0) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    const double fresh = std::sqrt(1 - carried * carried);
    double off = normal(random_);
    std::vector<float> values;
    for (size_t i = 0; i < n; ++i) {
      off = carried * off + fresh * normal(random_);
      const double stall = uniform(random_) < stalls ? 10 : 1;
      values.push_back(static_cast<float>(mean * std::exp(spread * off) * stall));
    }
    return values;
  }

 private:
  std::mt19937_64 random_;
};

// How many of 100 intervals hold the true ratio.
double coverage(size_t n, double carried, double stalls = 0) {
  constexpr int kPairs = 500;
  constexpr double kTruth = 1.08;
  Steps steps(n * 1000 + static_cast<uint64_t>(carried * 100));
  int held = 0;
  for (int i = 0; i < kPairs; ++i) {
    const auto a = estimate(steps.draw(n, 5e6, carried, 0.1, stalls), 1);
    const auto b = estimate(steps.draw(n, 5e6 * kTruth, carried, 0.1, stalls), 2);
    const Ratio of = ratio(*a, *b);
    held += of.low <= kTruth && kTruth <= of.high;
  }
  return 100.0 * held / kPairs;
}

TEST(Estimate, AnIntervalOf95HoldsTheTruthIn95Of100) {
  for (size_t n : {20U, 60U, 250U}) {
    const double of = coverage(n, 0);
    EXPECT_GT(of, 92.5) << n;
    EXPECT_LT(of, 98.8) << n << ": an interval that always holds it says nothing";
    RecordProperty("steps_" + std::to_string(n), std::to_string(of));
  }
}

TEST(Estimate, StepsThatResembleTheOnesBeforeDoNotMakeItSurer) {
  for (double carried : {0.3, 0.6, 0.8}) {
    for (size_t n : {60U, 250U}) {
      const double of = coverage(n, carried);
      EXPECT_GT(of, 92) << carried << ' ' << n;
      EXPECT_LT(of, 99.2) << carried << ' ' << n;
      RecordProperty("carried_" + std::to_string(static_cast<int>(carried * 100)) + "_" + std::to_string(n),
                     std::to_string(of));
    }
  }
}

TEST(Estimate, OfFewStepsHoldsTheTruthAlmostAsOften) {
  for (double carried : {0.0, 0.3, 0.6}) {
    const double of = coverage(kLeastSteps, carried);
    EXPECT_GT(of, 89) << carried;
    RecordProperty("least_carried_" + std::to_string(static_cast<int>(carried * 100)), std::to_string(of));
  }
}

TEST(Estimate, RareStallsNeitherMoveNorWidenIt) {
  EXPECT_GT(coverage(100, 0.3, 0.03), 92);
  Steps steps(3);
  const auto calm = estimate(steps.draw(400, 100, 0), 1),
             stalls = estimate(steps.draw(400, 100, 0, 0.1, 0.03), 1);
  EXPECT_NEAR(stalls->value / calm->value, 1, 0.03);
  EXPECT_LT(stalls->relative_error(), 1.5 * calm->relative_error());
}

TEST(Estimate, OfIndependentStepsIsThatOfTextbooks) {
  Steps steps(9);
  const std::vector<float> values = steps.draw(400, 100, 0, 0.05);
  const auto of = estimate(values, 7);
  // A mean trimmed by a tenth is a little less sure than the mean: of normal values by 3 %.
  EXPECT_NEAR(of->relative_error(), 0.05 / std::sqrt(400.0) * 1.03, 0.0007);
  EXPECT_NEAR(of->value, 100, 0.6);
}

TEST(Estimate, IsTheTrimmedMean) {
  std::vector<float> values(20);
  std::iota(values.begin(), values.end(), 1.0F);
  values[19] = 1e9F;
  const Trimmed of = trim(values);
  EXPECT_EQ(of.kept, 16U);
  EXPECT_DOUBLE_EQ(of.mean, 10.5);
  EXPECT_NEAR(std::accumulate(of.influences.begin(), of.influences.end(), 0.0), 0, 1e-9);
  EXPECT_DOUBLE_EQ(of.influences[19], of.influences[17]) << "how far off it is does not matter";
}

TEST(Estimate, DrawsLongerBlocksTheLongerThingsLast) {
  Steps steps(4);
  const auto loose = estimate(steps.draw(300, 100, 0), 1), tied = estimate(steps.draw(300, 100, 0.8), 1);
  EXPECT_GT(tied->block, loose->block);
  EXPECT_GT(tied->block, 10U);
  EXPECT_GT(tied->relative_error(), 1.8 * loose->relative_error());
}

TEST(Estimate, EqualValuesGiveEqualResults) {
  Steps steps(5);
  const std::vector<float> values = steps.draw(100, 100, 0.5);
  EXPECT_EQ(estimate(values, 1)->draws, estimate(values, 1)->draws);
  EXPECT_NE(estimate(values, 1)->draws, estimate(values, 2)->draws);
}

TEST(Estimate, KnowsWhenItCannotTell) {
  Steps steps(6);
  EXPECT_FALSE(estimate(steps.draw(kLeastSteps - 1, 100, 0), 1));
  EXPECT_TRUE(estimate(steps.draw(kLeastSteps, 100, 0), 1));
  EXPECT_FALSE(estimate(std::vector<float>(100, 0.0F), 1)) << "no ratio to nothing";
}

TEST(Estimate, OfStepsThatAreAllTheSameIsExact) {
  const auto a = estimate(std::vector<float>(50, 4.0F), 1), b = estimate(std::vector<float>(50, 5.0F), 2);
  const Ratio same = ratio(*a, *a), other = ratio(*a, *b);
  EXPECT_EQ(same.p, 1);
  EXPECT_EQ(other.p, 0);
  EXPECT_DOUBLE_EQ(other.low, 1.25);
  EXPECT_DOUBLE_EQ(other.high, 1.25);
}

TEST(Ratio, OfChanceIsBelowOneIn20OneTimeIn20) {
  Steps steps(8);
  int below = 0;
  for (int i = 0; i < 1000; ++i)
    below += ratio(*estimate(steps.draw(40, 100, 0.4), 1), *estimate(steps.draw(40, 100, 0.4), 2)).p < 0.05;
  EXPECT_GT(below, 10);
  EXPECT_LT(below, 80);
}

TEST(Discoveries, AreThoseOfBenjaminiAndHochberg) {
  // The example of their paper of 1995: 15 comparisons, of which 4 stand at 5 %.
  const std::vector<double> paper = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                     0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  EXPECT_DOUBLE_EQ(largest_discovery(paper, 0.05), 0.0095);
  EXPECT_LT(largest_discovery({0.2, 0.06, 0.9}, 0.05), 0);
  EXPECT_LT(largest_discovery({}, 0.05), 0);
}

}  // namespace
}  // namespace lockstep::analysis::compare
