// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/own_times.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr uint32_t kOps = 20, kGone = 10'000'000;

// Two ranks, of which the second is later by 0.5 ms, and what a ring kept of each.
model::Job end_of_a_long_job(uint32_t more_of_second = 0) {
  testing::JobBuilder builder(2);
  const uint32_t world = builder.world();
  for (uint32_t op = 0; op < kOps; ++op) {
    builder.call(0, world, {.called_ms = 1.0 + op, .launched_ms = 1.0 + op});
    builder.call(1, world, {.called_ms = 1.5 + op, .launched_ms = 1.5 + op});
  }
  model::Job job = builder.build();
  for (model::JobProcess& process : job.processes) {
    for (uint32_t& index : process.ops.index) index += kGone;
  }
  job.processes[1].ops.index.back() += more_of_second;
  return job;
}

TEST(LastArrivals, ReachFromTheOldestIndexThatIsKept) {
  const model::Job job = end_of_a_long_job();
  const LastArrivals last(job);
  EXPECT_EQ(last.of(0).size(), kOps);
  EXPECT_EQ(&last.of(0), &last.of(1));
  EXPECT_EQ(last.of(0).at(kGone), testing::at_ms(1.5));
  EXPECT_EQ(last.of(0).at(kGone + kOps - 1), testing::at_ms(1.5 + kOps - 1));
  EXPECT_EQ(last.of(0).at(kGone + kOps), 0);
  EXPECT_EQ(last.of(0).at(kGone - 1), 0);
}

TEST(LastArrivals, HaveNoRoomForIndexesThatOnlyADamagedFileHas) {
  const auto most = static_cast<uint32_t>(most_indexes(2 * kOps));
  const auto with_last = [](uint32_t after) { return end_of_a_long_job(after - (kOps - 1)); };
  const model::Job sparse = with_last(most - 1);
  EXPECT_EQ(LastArrivals(sparse).of(0).size(), most);
  const model::Job job = with_last(most);
  const LastArrivals last(job);
  EXPECT_EQ(last.of(0).size(), kOps);
  EXPECT_EQ(last.of(1).at(kGone), testing::at_ms(1.5));
  EXPECT_EQ(last.of(1).at(kGone + kOps - 1), testing::at_ms(1.0 + kOps - 1));
}

}  // namespace
}  // namespace lockstep::analysis::straggler
