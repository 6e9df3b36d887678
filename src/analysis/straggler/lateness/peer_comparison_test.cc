// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/lateness/peer_comparison.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

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

// What is left of a ring file: nothing shows which operation its first is.
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

// Eight ranks call a collective `apart_ms` after each other and, `pause_ms` after the last of them, a pair's
// operation, `spread_ms` after each other, but for rank 0, who is a millisecond later; `waits`: else each its
// pause after its own call.
std::optional<bool> waited(double apart_ms, double spread_ms, bool waits, uint32_t ranks = 8) {
  testing::JobBuilder builder(ranks);
  const uint32_t world = builder.world();
  std::vector<uint32_t> pairs;
  for (uint32_t rank = 0; rank < ranks; rank += 2)
    pairs.push_back(builder.comm("pair" + std::to_string(rank), {rank, rank + 1}));
  for (uint32_t step = 0; step < 4; ++step) {
    const double begin = 1 + step * 100.0;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const double called = begin + apart_ms * rank;
      const double free = waits ? begin + apart_ms * (ranks - 1) : called;
      builder.call(rank, world, {.called_ms = called});
      builder.call(rank, pairs[rank / 2], {.called_ms = free + 5 + spread_ms * rank + (rank == 0 ? 1 : 0)});
    }
  }
  const model::Job job = builder.build();
  const std::vector<ExclusiveTimes> times = all_times(job);
  const MemberTable table(job, times);
  const model::Member& first = job.members[job.comms[pairs[0]].members[0]];
  return PeerComparison(job, times, table).waited_before(first, first.first + 2);
}

TEST(PeerComparison, WhoGoesOnTogetherAfterTheLastHasWaited) {
  EXPECT_EQ(waited(0.5, 0.002, true), true);
  EXPECT_EQ(waited(0.5, 0.11, true), true) << "within a quarter of how far they lay apart";
  EXPECT_EQ(waited(0.5, 0.16, true), false);
}

TEST(PeerComparison, WhoGoesOnAtItsOwnPaceHasNotWaited) {
  EXPECT_EQ(waited(0.5, 0.002, false), false);
  EXPECT_EQ(waited(2, 0.002, false), false) << "some go on before the last has come";
}

TEST(PeerComparison, WhoComesAtOneTimeDoesNotShowWhetherItWaits) {
  EXPECT_EQ(waited(0.002, 0.002, true), std::nullopt);
  EXPECT_EQ(waited(0.03, 0.002, true), std::nullopt) << "a quarter of 60 us is jitter";
  EXPECT_EQ(waited(0.05, 0.002, true), true);
  EXPECT_EQ(waited(0.5, 0.002, true, 2), std::nullopt) << "of two, one is always the first";
}

}  // namespace
}  // namespace lockstep::analysis::straggler
