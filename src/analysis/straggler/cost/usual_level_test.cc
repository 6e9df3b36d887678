// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/cost/usual_level.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "analysis/straggler/cost/culprits.h"

namespace lockstep::analysis::straggler {
namespace {

using Level = std::function<double(size_t step)>;

// With noise of +- 5.
std::vector<float> around(const Level& level, size_t steps = 200) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> noise(-5, 5);
  std::vector<float> out;
  for (size_t step = 0; step < steps; ++step) out.push_back(static_cast<float>(level(step) + noise(random)));
  return out;
}

TEST(UsualLevel, IsTheMedian) {
  EXPECT_EQ(usual_level(std::vector<float>{4, 1, 3}, 0), 3);
  EXPECT_EQ(usual_level(std::vector<float>{4, 1}, 0), 1) << "the lower one";
  EXPECT_EQ(usual_level(std::vector<float>{9, 1, NAN}, 1), 1) << "from the second on, and absent";
  EXPECT_EQ(usual_level(std::vector<float>{NAN}, 0), 0);
  EXPECT_EQ(usual_level({}, 0), 0);
  EXPECT_NEAR(usual_level(around([](size_t) { return 100; }), 0), 100, 1.5);
}

TEST(UsualLevel, IsTheLowerOfTwo) {
  for (size_t change : {20u, 100u, 180u}) {
    EXPECT_NEAR(usual_level(around([=](size_t step) { return step < change ? 100 : 120; }), 0), 100, 2);
    EXPECT_NEAR(usual_level(around([=](size_t step) { return step < change ? 120 : 100; }), 0), 100, 2);
  }
}

TEST(UsualLevel, IsNotThatOfAFewSteps) {
  const auto with_first = [](size_t steps) {
    return usual_level(around([=](size_t step) { return step < steps ? 100 : 120; }), 0);
  };
  EXPECT_NEAR(with_first(3 * kLeastSteps), 100, 4);
  EXPECT_NEAR(with_first(kLeastSteps), 120, 2);
}

TEST(UsualLevel, ChangesOnlyBeyondTheNoise) {
  const auto with = [](double rise) {
    return usual_level(around([=](size_t step) { return step < 20 ? 100 : 100 + rise; }), 0);
  };
  EXPECT_NEAR(with(3), 103, 1.5);
  EXPECT_NEAR(with(8), 100, 2);
}

TEST(UsualLevel, IsNotThatOfASingleLongStep) {
  const auto series = around([](size_t step) { return step == 3 ? 1e6 : step < 20 ? 100 : 120; });
  EXPECT_NEAR(usual_level(series, 0), 100, 2);
  EXPECT_NEAR(usual_level(around([](size_t step) { return step % 2 == 0 ? 100 : 200; }), 0), 100, 6);
}

}  // namespace
}  // namespace lockstep::analysis::straggler
