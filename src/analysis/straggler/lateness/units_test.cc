// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness/units.h"

#include <gtest/gtest.h>

namespace lockstep::analysis::straggler {
namespace {

// Six buckets and a scalar.
const std::vector<uint32_t> kStep = {1, 1, 1, 1, 1, 1, 2};
int64_t evenly(size_t place) { return static_cast<int64_t>(place) * 1000; }

std::vector<uint32_t> steps_with(uint32_t extra, size_t every, size_t steps) {
  std::vector<uint32_t> sequence;
  for (size_t step = 1; step <= steps; ++step) {
    sequence.insert(sequence.end(), kStep.begin(), kStep.end());
    if (step % every == 0) sequence.push_back(extra);
  }
  return sequence;
}

// 20 steps of a flag, buckets, a scalar; an evaluation has none of the buckets. Three of ten steps are of
// one.
std::vector<uint32_t> with_evaluations() {
  std::vector<uint32_t> sequence;
  for (int step = 0; step < 20; ++step) {
    sequence.push_back(3);
    if (step % 10 < 7) sequence.insert(sequence.end(), 118, 1);
    sequence.push_back(2);
  }
  return sequence;
}

Units units_of(const std::vector<uint32_t>& sequence, const std::function<int64_t(size_t)>& time = evenly) {
  return find_units(sequence, find_period(sequence), time);
}

TEST(Units, AreStepsThoughAFlagIsReducedInSome) {
  for (size_t steps : {30u, 59u, 85u, 240u}) {
    const std::vector<uint32_t> sequence = steps_with(3, 20, steps);
    const Units units = units_of(sequence);
    EXPECT_EQ(units.length, kStep.size()) << steps;
    ASSERT_EQ(units.begins.size(), steps);
    EXPECT_EQ(units.begins[20], 20 * kStep.size() + 1) << "the flag belongs to the step before";
  }
}

// A period of three layers forward, in 1 us an operation, three backward, in 2, and an optimizer's step.
TEST(Units, AreNotTheLayersOfAStep) {
  std::vector<uint32_t> sequence;
  for (int step = 0; step < 10; ++step) {
    for (int layer = 0; layer < 12; ++layer) sequence.insert(sequence.end(), {4, 5});
    sequence.push_back(6);
  }
  const auto backward_is_slower = [](size_t place) {
    const size_t step = place / 25, at = place % 25;
    const size_t forward = std::min<size_t>(at, 12), backward = at - forward;
    return static_cast<int64_t>(step * 36 + forward + 2 * backward) * 1000;
  };
  EXPECT_EQ(units_of(sequence, backward_is_slower).length, 25u);
  EXPECT_EQ(units_of(sequence, evenly).length, 2u) << "nothing tells them from steps";
}

TEST(Units, AreTheExactPeriodWhereNothingElseRepeats) {
  std::vector<uint32_t> sequence = {9, 8, 7};
  for (int i = 0; i < 5; ++i) sequence.insert(sequence.end(), {1, 2, 1, 3});
  const Units units = units_of(sequence);
  EXPECT_EQ(units.length, 4u);
  EXPECT_EQ(units.begins.front(), 3u);
  EXPECT_EQ(units.begins.size(), 5u);
  EXPECT_EQ(units_of({1, 2, 3, 4, 5, 6, 7, 8}).length, 0u);
  EXPECT_EQ(units_of({}).length, 0u);
}

TEST(Units, AreStepsThoughManyAreShort) {
  const std::vector<uint32_t> sequence = with_evaluations();
  const Units units = units_of(sequence);
  EXPECT_EQ(units.length, 120u);
  EXPECT_EQ(units.begins.size(), 14u);
}

TEST(Units, AreNotOneOperationOverAndOverWhereThereAreOthers) {
  std::vector<uint32_t> sequence;
  for (uint32_t other = 10; other < 40; ++other) {
    sequence.insert(sequence.end(), other, 1);
    sequence.push_back(other);
  }
  EXPECT_EQ(find_period(sequence).length, 1u);
  EXPECT_EQ(units_of(sequence).length, 0u);
  EXPECT_EQ(units_of(std::vector<uint32_t>(100, 1)).length, 1u) << "nothing else is there";
}

TEST(Rounds, AreTheExactPeriodWhereItIsNearlyAll) {
  std::vector<uint32_t> layers;
  for (int step = 0; step < 10; ++step) {
    for (int layer = 0; layer < 12; ++layer) layers.insert(layers.end(), {4, 5});
    layers.push_back(6);
  }
  EXPECT_EQ(find_rounds(layers).length, 25u);
  EXPECT_EQ(find_rounds(layers).begins.size(), 10u);
  EXPECT_EQ(find_rounds({1, 2, 3, 4, 5, 6, 7, 8}).length, 0u);
}

TEST(Rounds, SkipEvaluations) {
  std::vector<uint32_t> sequence = with_evaluations();
  const Units rounds = find_rounds(sequence);
  EXPECT_EQ(rounds.length, 120u);
  ASSERT_EQ(rounds.begins.size(), 14u);
  EXPECT_EQ(rounds.begins[7], 7u * 120 + 3 * 2);
  sequence.insert(sequence.end(), {3, 1, 1});
  EXPECT_EQ(find_rounds(sequence).begins.back(), sequence.size() - 3) << "it has only begun";
  sequence.push_back(7);
  EXPECT_EQ(find_rounds(sequence).begins.size(), 14u) << "something else has";
}

// What repeats is a small part, and what ends the sequence is one operation over and over.
TEST(Rounds, AreNoneWhereNothingCoversTheProgram) {
  std::vector<uint32_t> sequence;
  for (int i = 0; i < 4; ++i) sequence.insert(sequence.end(), {1, 2});
  for (uint32_t other = 10; other < 30; ++other) sequence.push_back(other);
  sequence.insert(sequence.end(), 9, 5);
  EXPECT_EQ(find_rounds(sequence).length, 0u);
  EXPECT_TRUE(find_rounds(sequence).begins.empty());
  EXPECT_EQ(Rounds(sequence, 0).place(0), std::nullopt);
}

TEST(Rounds, TellThePlaceOfAnIndex) {
  const Rounds rounds(with_evaluations(), 1000);
  EXPECT_EQ(rounds.length(), 120u);
  EXPECT_EQ(rounds.place(999), std::nullopt);
  EXPECT_EQ(rounds.place(1000), 0u);
  EXPECT_EQ(rounds.place(1000 + 6 * 120 + 119), 119u);
  EXPECT_EQ(rounds.place(1000 + 7 * 120), std::nullopt) << "an evaluation";
  EXPECT_EQ(rounds.place(1000 + 7 * 120 + 6), 0u);
  EXPECT_EQ(rounds.place(1000 + 7 * 120 + 6 + 7 * 120), std::nullopt);
}

// Nearly all: nine of ten operations.
TEST(Units, CoverNearlyAllOperations) {
  const auto with_others = [](size_t others) {
    std::vector<uint32_t> sequence = steps_with(3, 20, 18);  // 126 operations
    for (size_t i = 0; i < others; ++i) sequence.insert(sequence.begin(), static_cast<uint32_t>(100 + i));
    // No exact period either, which may be anywhere.
    return find_units(sequence, Period{}, evenly).length;
  };
  EXPECT_EQ(with_others(14), kStep.size());
  EXPECT_EQ(with_others(15), 0u);
}

}  // namespace
}  // namespace lockstep::analysis::straggler
