// SPDX-License-Identifier: Apache-2.0
#include "model/time_histogram.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(TimeHistogram, QuantilesAreWithinAnEighth) {
  TimeHistogram times, more;
  EXPECT_EQ(times.quantile(0.5), 0);
  for (int i = 1; i <= 500; ++i) times.add(static_cast<float>(i) * 1000);
  for (int i = 501; i <= 1000; ++i) more.add(static_cast<float>(i) * 1000);
  times.add(more);
  EXPECT_EQ(times.count(), 1000u);
  EXPECT_NEAR(times.quantile(0.5), 500e3, 500e3 / 8);
  EXPECT_NEAR(times.quantile(0.99), 990e3, 990e3 / 8);
  EXPECT_NEAR(times.quantile(1), 1000e3, 1000e3 / 8);
}

TEST(TimeHistogram, TakesAnyTime) {
  TimeHistogram times;
  for (float ns : {-5.0f, 0.0f, 0.5f}) times.add(ns);
  EXPECT_EQ(times.quantile(0.99), 0);
  times.add(1e30f);
  EXPECT_GT(times.quantile(0.99), 1e13);
}

}  // namespace
}  // namespace lockstep::model
