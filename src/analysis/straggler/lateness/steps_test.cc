// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness/steps.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {
namespace {

TEST(Period, IsFoundBehindAPrefixAndBeforeATail) {
  std::vector<uint32_t> sequence = {9, 8, 7};
  for (int i = 0; i < 5; ++i) sequence.insert(sequence.end(), {1, 2, 1, 3});
  Period period = find_period(sequence);
  EXPECT_EQ(period.length, 4u);
  EXPECT_EQ(period.repeats, 5u);
  EXPECT_EQ(period.begin, 3u);
  sequence.push_back(6);
  period = find_period(sequence);
  EXPECT_EQ(period.length, 4u);
  EXPECT_EQ(period.begin, 3u);
}

TEST(Period, OfOneAndOfNone) {
  EXPECT_EQ(find_period({5, 5, 5, 5, 5, 5}).length, 1u);
  EXPECT_EQ(find_period({1, 2, 3, 4, 5, 6, 7, 8}).length, 0u);
  EXPECT_EQ(find_period({1, 2, 1, 2}).length, 0u) << "twice is chance";
  EXPECT_EQ(find_period({}).length, 0u);
}

TEST(Steps, CountFromThePeriodOfTheOperations) {
  testing::JobBuilder builder(1);
  const uint32_t world = builder.world();
  builder.call(0, world, {.func = "Broadcast", .called_ms = 0});
  for (uint32_t step = 0; step < 4; ++step) {
    builder.call(0, world, {.called_ms = 10 + step * 10.0, .bytes = 64});
    builder.call(0, world, {.called_ms = 15 + step * 10.0, .bytes = 128});
  }
  Steps steps = find_steps(builder.build(), 0);
  EXPECT_EQ(steps.source, Steps::Source::kPeriod);
  EXPECT_EQ(steps.period, 2u);
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps.number[1], 1);
  EXPECT_EQ(steps.at(testing::at_ms(0)), 0u);
  EXPECT_EQ(steps.at(testing::at_ms(12)), 1u);
  EXPECT_EQ(steps.at(testing::at_ms(60)), 4u);
}

TEST(Steps, AreThoseOfTheFirstProcessThatTells) {
  const auto steps_of = [](bool repeats) {
    testing::JobBuilder builder(4);
    const uint32_t some = builder.comm("some", {2, 3}), alone = builder.comm("alone", {1});
    for (uint32_t i = 0; i < 20; ++i)
      builder.call(1, alone, {.called_ms = i * 7.0, .bytes = uint64_t{64} << i});
    if (repeats) builder.steps(some, 10, 5, 10);
    return find_steps(builder.build());
  };
  const Steps found = steps_of(true);
  EXPECT_EQ(found.process, 2u) << "rank 0 recorded nothing, and nothing repeats on rank 1";
  EXPECT_EQ(found.source, Steps::Source::kPeriod);
  const Steps parts = steps_of(false);
  EXPECT_EQ(parts.process, 1u);
  EXPECT_EQ(parts.source, Steps::Source::kSlices);
  EXPECT_GT(parts.size(), 0u);
  EXPECT_EQ(find_steps(testing::JobBuilder(2).build()).size(), 0u);
}

TEST(Steps, TakeTheMarksOfTheProgram) {
  testing::JobBuilder builder(1);
  const uint32_t world = builder.world();
  builder.steps(world, 10, 5, 10);
  for (int64_t step = 0; step < 3; ++step) {
    model::Mark mark{};
    mark.value = 100 + step;
    mark.is_step = 1;
    mark.time_ns = testing::at_ms(static_cast<double>(step) * 30);
    builder.process(0).marks.push_back(mark);
  }
  Steps steps = find_steps(builder.build(), 0);
  EXPECT_EQ(steps.source, Steps::Source::kMarks);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps.number[steps.at(testing::at_ms(31))], 101);
}

}  // namespace
}  // namespace lockstep::analysis::straggler
