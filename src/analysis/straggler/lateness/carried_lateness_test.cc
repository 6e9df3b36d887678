// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness/carried_lateness.h"

#include <gtest/gtest.h>

namespace lockstep::analysis::straggler {
namespace {

using Answer = BesideChanges::Answer;

// Of 20 changes by 100 us, each made up for by this share, and by more and less than that in turn.
Answer answer(double share, double noise_ns) {
  BesideChanges changes;
  for (int i = 0; i < 20; ++i) {
    const double longer = i % 4 < 2 ? 100'000 : -100'000;
    changes.add(longer, share * longer + (i % 2 == 0 ? noise_ns : -noise_ns));
  }
  return changes.answer();
}

TEST(BesideChanges, TellWhetherWorkMakesUpForThem) {
  EXPECT_EQ(answer(0, 0), Answer::kNo);
  EXPECT_EQ(answer(0.49, 0), Answer::kNo);
  EXPECT_EQ(answer(0.51, 0), Answer::kYes);
  EXPECT_EQ(answer(1, 0), Answer::kYes);
}

// The error of the slope is a hundred thousandth of the noise in ns, over the root of 20.
TEST(BesideChanges, TellNothingThatNoiseMayHaveMade) {
  EXPECT_EQ(answer(1, 110'000), Answer::kYes);
  EXPECT_EQ(answer(1, 114'000), Answer::kUnknown);
  EXPECT_EQ(answer(0, 110'000), Answer::kNo);
  EXPECT_EQ(answer(0, 114'000), Answer::kUnknown);
}

TEST(BesideChanges, TellNothingWhereAllLastsAsLong) {
  BesideChanges changes;
  EXPECT_EQ(changes.answer(), Answer::kUnknown);
  changes.add(20'000, 20'000);
  EXPECT_EQ(changes.answer(), Answer::kUnknown) << "jitter";
  changes.add(-20'001, -20'001);
  EXPECT_EQ(changes.answer(), Answer::kYes);
}

}  // namespace
}  // namespace lockstep::analysis::straggler
