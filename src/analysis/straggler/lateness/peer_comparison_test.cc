// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness/peer_comparison.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr uint32_t kRanks = 6;

std::vector<ExclusiveTimes> all_times(const model::Job& job) {
  std::vector<ExclusiveTimes> times;
  const LastArrivals last(job);
  for (uint32_t i = 0; i < job.processes.size(); ++i) times.push_back(exclusive_times(job, i, last));
  return times;
}

std::vector<uint32_t> processes(std::span<const MemberTable::Row> table) {
  std::vector<uint32_t> out;
  for (const MemberTable::Row& row : table) out.push_back(row.ops.member().process);
  return out;
}

// Hosts take turns along the ranks.
TEST(MemberTable, LieTogetherWhereClocksCompare) {
  testing::JobBuilder builder(kRanks, 3);
  const uint32_t world = builder.comm("world", {0, 3, 1, 4, 2, 5});
  builder.steps(world, 20, 1, 1);
  const model::Job job = builder.build(false);
  const std::vector<ExclusiveTimes> times = all_times(job);
  const MemberTable table(job, times);
  ASSERT_NE(times[0].domain, times[3].domain);
  EXPECT_EQ(processes(table.of(world, times[0].domain)), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(processes(table.of(world, times[3].domain)), (std::vector<uint32_t>{3, 4, 5}));
  EXPECT_TRUE(table.of(world, 99).empty());
}

// What is left of a ring file: nothing tells which operation its first is.
TEST(MemberTable, AreNotForMembersWhoseIndexesMeanNothing) {
  testing::JobBuilder builder(kRanks);
  const uint32_t world = builder.world();
  builder.steps(world, 20, 1, 1, 0);
  model::Job job = builder.build();
  model::Member& lost = job.members[job.comms[world].members[2]];
  lost.alignment = model::Member::Alignment::kNone;
  const std::vector<ExclusiveTimes> times = all_times(job);
  const MemberTable table(job, times);
  EXPECT_EQ(processes(table.of(world, 0)), (std::vector<uint32_t>{0, 1, 3, 4, 5}));
  PeerComparison peers(job, times, table);
  EXPECT_EQ(peers.late_before(lost, lost.first + 5), PeerComparison::kUnbounded);
  const model::Member& kept = job.members[job.comms[world].members[0]];
  EXPECT_EQ(peers.late_before(kept, kept.first + 5), 0);
}

}  // namespace
}  // namespace lockstep::analysis::straggler
