// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness/company.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr uint32_t kRanks = 6;

std::vector<OwnTimes> all_times(const model::Job& job) {
  std::vector<OwnTimes> times;
  const LastArrivals last(job);
  for (uint32_t i = 0; i < job.processes.size(); ++i) times.push_back(own_times(job, i, last));
  return times;
}

std::vector<uint32_t> processes(std::span<const Seats::Seat> seats) {
  std::vector<uint32_t> out;
  for (const Seats::Seat& seat : seats) out.push_back(seat.ops.member().process);
  return out;
}

// Hosts take turns along the ranks.
TEST(Seats, LieTogetherWhereClocksCompare) {
  testing::JobBuilder builder(kRanks, 3);
  const uint32_t world = builder.comm("world", {0, 3, 1, 4, 2, 5});
  builder.steps(world, 20, 1, 1);
  const model::Job job = builder.build(false);
  const std::vector<OwnTimes> times = all_times(job);
  const Seats seats(job, times);
  ASSERT_NE(times[0].domain, times[3].domain);
  EXPECT_EQ(processes(seats.of(world, times[0].domain)), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(processes(seats.of(world, times[3].domain)), (std::vector<uint32_t>{3, 4, 5}));
  EXPECT_TRUE(seats.of(world, 99).empty());
}

// What is left of a ring file: nothing tells which operation its first is.
TEST(Seats, AreNotForMembersWhoseIndexesMeanNothing) {
  testing::JobBuilder builder(kRanks);
  const uint32_t world = builder.world();
  builder.steps(world, 20, 1, 1, 0);
  model::Job job = builder.build();
  model::Member& lost = job.members[job.comms[world].members[2]];
  lost.alignment = model::Member::Alignment::kNone;
  const std::vector<OwnTimes> times = all_times(job);
  const Seats seats(job, times);
  EXPECT_EQ(processes(seats.of(world, 0)), (std::vector<uint32_t>{0, 1, 3, 4, 5}));
  Company company(job, times, seats);
  EXPECT_EQ(company.late_before(lost, lost.first + 5), Company::kUnbounded);
  const model::Member& kept = job.members[job.comms[world].members[0]];
  EXPECT_EQ(company.late_before(kept, kept.first + 5), 0);
}

}  // namespace
}  // namespace lockstep::analysis::straggler
