// SPDX-License-Identifier: Apache-2.0
#include "job/match/match.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"

namespace lockstep::job::match {
namespace {

using analysis::testing::Call;
using analysis::testing::JobBuilder;
using model::Job;
using model::Member;

constexpr uint8_t kRing = 1;

const Member& member(const Job& job, uint32_t comm, uint32_t rank) {
  return job.members[job.comms[comm].members[rank]];
}
std::vector<uint32_t> indexes(const Job& job, uint32_t comm, uint32_t rank) {
  const Member& m = member(job, comm, rank);
  const Column<uint32_t>& all = job.ops(m).index;
  return {all.begin() + m.first, all.begin() + m.first + m.ops};
}
uint64_t unmatched(const CommMatch& match, Reason reason) {
  return match.unmatched[static_cast<size_t>(reason)];
}
// A process that has forgotten `lost` events.
void wrapped(JobBuilder& builder, uint32_t rank, uint64_t lost) {
  builder.process(rank).row.retention = kRing;
  builder.process(rank).lost = lost;
}
// Calls first..end-1 of a rank that called `func` alone.
void calls(JobBuilder& builder, uint32_t rank, uint32_t comm, uint32_t first, uint32_t end,
           const std::string& func = "AllReduce") {
  for (uint32_t seq = first; seq < end; ++seq)
    builder.call(rank, comm, {.func = func, .called_ms = 10.0 + seq, .seq = seq});
}

// Behind a hole in the middle a number gives the place in the order of its function alone.
TEST(Match, BehindHolesADifferenceNeedsAMemberWithoutOne) {
  for (const bool has_whole : {false, true}) {
    JobBuilder builder(has_whole ? 4 : 3);
    const uint32_t world = builder.world();
    const uint32_t ranks = has_whole ? 4 : 3;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      calls(builder, rank, world, 0, 5);
      builder.call(
          rank, world,
          {.func = rank == 0 ? "AllGather" : "AllReduce", .called_ms = 15.0, .seq = rank == 0 ? 0u : 5u});
      if (rank < 3) builder.process(rank).lost = builder.process(rank).holes = 1;
    }
    Job job = builder.build();
    align(job);
    EXPECT_EQ(differences(job).size(), has_whole ? 1u : 0u);
  }
}

TEST(Match, WholeMembersCountFromTheStart) {
  JobBuilder builder(3);
  uint32_t world = builder.world();
  builder.steps(world, 10, 10, 5);
  Job job = builder.build();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(member(job, world, rank).alignment, Member::Alignment::kFromStart);
    EXPECT_EQ(indexes(job, world, rank).back(), 9u);
  }
  std::vector<CommMatch> counts = count_matches(job);
  EXPECT_EQ(counts[0].matched, 30u);
  EXPECT_TRUE(differences(job).empty());
}

TEST(Match, AWrappedRingFindsItsPlaceByNumber) {
  JobBuilder builder(3);
  uint32_t world = builder.world();
  calls(builder, 0, world, 0, 20);
  calls(builder, 1, world, 12, 20);
  calls(builder, 2, world, 5, 18);
  wrapped(builder, 1, 12);
  wrapped(builder, 2, 5);
  Job job = builder.build();
  EXPECT_EQ(member(job, world, 0).alignment, Member::Alignment::kFromStart);
  EXPECT_EQ(member(job, world, 1).alignment, Member::Alignment::kBySeq);
  EXPECT_EQ(indexes(job, world, 1).front(), 12u);
  EXPECT_EQ(indexes(job, world, 2).front(), 5u);
  EXPECT_EQ(job.next_index(member(job, world, 2)), 18u);
  CommMatch counts = count_matches(job)[0];
  EXPECT_EQ(counts.matched, 3u * 6);
  EXPECT_EQ(unmatched(counts, Reason::kForgotten), 12u + 7u);
  EXPECT_EQ(unmatched(counts, Reason::kNotCalled), 2u + 2u);
}

TEST(Match, AllRingsWrappedStillAgree) {
  JobBuilder builder(3);
  uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    calls(builder, rank, world, 100 + rank * 10, 200);
    wrapped(builder, rank, 100 + rank * 10);
  }
  Job job = builder.build();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(member(job, world, rank).alignment, Member::Alignment::kBySeq);
    EXPECT_EQ(indexes(job, world, rank).front(), 100 + rank * 10);
    EXPECT_EQ(indexes(job, world, rank).back(), 199u);
  }
}

// Rank 0 calls an all-reduce where the others gather, and its gathers have other numbers from then on.
TEST(Match, RanksOfARingThatCallOtherFunctionsMeetInThem) {
  for (const uint32_t ranks : {2U, 3U}) {
    JobBuilder builder(ranks);
    const uint32_t world = builder.world();
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      calls(builder, rank, world, 100, 110, "AllGather");
      if (rank == 0) calls(builder, rank, world, 0, 1);
      calls(builder, rank, world, 110, rank == 0 ? 115 : 116, "AllGather");
      wrapped(builder, rank, 100);
    }
    const Job job = builder.build();
    for (uint32_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(indexes(job, world, rank).back(), 115u);
    const std::vector<Difference> found = differences(job);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].index, 110u);
    EXPECT_EQ(found[0].tie, ranks == 2);
  }
}

TEST(Match, WhatItsSourceNumberedIsNotNumberedAgain) {
  JobBuilder builder(2);
  uint32_t world = builder.world();
  calls(builder, 0, world, 0, 20);
  calls(builder, 1, world, 0, 20);
  Job job = builder.build();
  // Holes that differ, as of a recorder that keeps what it can.
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Member& of = job.members[job.comms[world].members[rank]];
    of.numbered = true;
    job.processes[of.process].lost = 10;
    model::JobOps& ops = job.processes[of.process].ops;
    for (uint32_t i = 0; i < of.ops; ++i) ops.index[of.first + i] = 3 * i + rank;
  }
  align(job);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(member(job, world, rank).alignment, Member::Alignment::kBySeq);
    EXPECT_EQ(indexes(job, world, rank)[5], 15 + rank);
  }
}

TEST(Match, TheFirstOfAFunctionIsNoProofOfTheStart) {
  // What a wrapped ring has begins with an all-reduce number 0, behind broadcasts that are gone.
  JobBuilder builder(2);
  uint32_t world = builder.world();
  calls(builder, 0, world, 0, 5, "Broadcast");
  calls(builder, 0, world, 0, 5);
  calls(builder, 1, world, 0, 5);
  wrapped(builder, 1, 5);
  Job job = builder.build();
  EXPECT_EQ(member(job, world, 1).alignment, Member::Alignment::kBySeq);
  EXPECT_EQ(indexes(job, world, 1).front(), 5u);
  EXPECT_TRUE(differences(job).empty());
}

TEST(Match, LossesInTheMiddleLeaveGaps) {
  JobBuilder builder(2);
  uint32_t world = builder.world();
  calls(builder, 0, world, 0, 10);
  calls(builder, 1, world, 0, 3);
  calls(builder, 1, world, 7, 10);
  wrapped(builder, 1, 4);
  Job job = builder.build();
  EXPECT_EQ(indexes(job, world, 1), (std::vector<uint32_t>{0, 1, 2, 7, 8, 9}));
  EXPECT_FALSE(job.op_at(member(job, world, 1), 5));
  EXPECT_TRUE(job.op_at(member(job, world, 1), 8));
  EXPECT_TRUE(differences(job).empty());
  CommMatch counts = count_matches(job)[0];
  EXPECT_EQ(counts.matched, 12u);
  EXPECT_EQ(unmatched(counts, Reason::kForgotten), 4u);
}

TEST(Match, SeveralFunctionsKeepTheirPlaces) {
  // The all-gathers' numbers are missing from the start of the ring: they were lost before, not in the
  // middle.
  JobBuilder builder(2);
  uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    calls(builder, rank, world, 50 + rank * 2, 60);
    calls(builder, rank, world, 30, 40, "AllGather");
    calls(builder, rank, world, 60, 65);
    wrapped(builder, rank, 80);
  }
  Job job = builder.build();
  EXPECT_EQ(indexes(job, world, 0).front(), 80u);
  EXPECT_EQ(indexes(job, world, 0).back(), 104u);
  EXPECT_EQ(indexes(job, world, 1).front(), 82u);
  EXPECT_EQ(indexes(job, world, 1).back(), 104u);
}

// Another thread's part of the ring is shorter: it had the numbers of the first operations, and of some
// between.
TEST(Match, OperationsThatHaveLostTheirNumbersTakeTheirPlaces) {
  JobBuilder builder(2);
  uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    calls(builder, rank, world, 100, 120);
    calls(builder, rank, world, 40, 50, "AllGather");
    calls(builder, rank, world, 120, 130);
    wrapped(builder, rank, 500);
  }
  Job job = builder.build();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Column<uint32_t>& seq = job.processes[rank].ops.seq;
    for (uint32_t i = 0; i < 12 + rank; ++i) seq[i] = model::kNoIndex;
    for (uint32_t i = 20; i < 23; ++i) seq[i] = model::kNoIndex;
    for (uint32_t i = 32; i < 35; ++i) seq[i] = model::kNoIndex;
  }
  for (Member& m : job.members) m.alignment = Member::Alignment::kFromStart;
  align(job);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(member(job, world, rank).alignment, Member::Alignment::kBySeq);
    EXPECT_EQ(indexes(job, world, rank).front(), 140u);
    EXPECT_EQ(indexes(job, world, rank).back(), 179u);
  }
  EXPECT_TRUE(differences(job).empty());
}

TEST(Match, ReplaysOfAGraphRepeatTheirNumbers) {
  JobBuilder builder(2);
  uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    calls(builder, rank, world, 0, 3);
    for (int replay = 0; replay < 4; ++replay) calls(builder, rank, world, 1, 3);
  }
  Job whole = builder.build();
  EXPECT_EQ(member(whole, world, 1).alignment, Member::Alignment::kFromStart);
  EXPECT_EQ(indexes(whole, world, 1).back(), 10u);

  // Once some are gone, a repeated number finds no place.
  JobBuilder lossy(2);
  world = lossy.world();
  calls(lossy, 0, world, 0, 3);
  for (int replay = 0; replay < 4; ++replay) calls(lossy, 0, world, 1, 3);
  calls(lossy, 1, world, 1, 3);
  calls(lossy, 1, world, 1, 3);
  wrapped(lossy, 1, 7);
  Job job = lossy.build();
  EXPECT_EQ(member(job, world, 1).alignment, Member::Alignment::kNone);
  EXPECT_EQ(unmatched(count_matches(job)[0], Reason::kNotAligned), 11u + 4u);
}

TEST(Match, WithoutNumbersALossLeavesNoOrder) {
  JobBuilder builder(2);
  uint32_t world = builder.world();
  builder.steps(world, 10, 10, 5);
  wrapped(builder, 1, 3);
  Job job = builder.build();
  // As NCCL reports calls that ran without a task.
  for (model::JobProcess& process : job.processes)
    std::fill(process.ops.seq.begin(), process.ops.seq.end(), model::kNoIndex);
  for (Member& m : job.members) m.alignment = Member::Alignment::kFromStart;
  align(job);
  EXPECT_EQ(member(job, world, 0).alignment, Member::Alignment::kFromStart);
  EXPECT_EQ(member(job, world, 1).alignment, Member::Alignment::kNone);
  EXPECT_TRUE(differences(job).empty());
}

TEST(Match, CommunicatorsOfTheSameRanksStayApart) {
  JobBuilder builder(2);
  uint32_t a = builder.world("a"), b = builder.world("b");
  builder.steps(a, 3, 10, 5);
  builder.steps(b, 7, 12, 5);
  Job job = builder.build();
  EXPECT_EQ(job.next_index(member(job, a, 1)), 3u);
  EXPECT_EQ(job.next_index(member(job, b, 1)), 7u);
  std::vector<CommMatch> counts = count_matches(job);
  EXPECT_EQ(counts[a].matched, 6u);
  EXPECT_EQ(counts[b].matched, 14u);
}

TEST(Match, AMissingRankIsTheReason) {
  JobBuilder builder(4);
  uint32_t world = builder.world(), half = builder.comm("half", {0, 1});
  builder.steps(world, 5, 10, 5);
  builder.steps(half, 5, 10, 5);
  builder.without(3);
  Job job = builder.build();
  std::vector<CommMatch> counts = count_matches(job);
  EXPECT_EQ(counts[world].matched, 0u);
  EXPECT_EQ(unmatched(counts[world], Reason::kRankAbsent), 15u);
  EXPECT_EQ(counts[half].matched, 10u);
}

TEST(Match, UnrankedAndUnknownMembersHaveAReason) {
  JobBuilder builder(2);
  uint32_t world = builder.world(), other = builder.comm("other", {0, 1});
  builder.steps(world, 5, 10, 5);
  builder.steps(other, 4, 11, 5);
  Job job = builder.build();
  for (uint32_t comm : {world, other}) {
    model::JobComm& row = job.comms[comm];
    row.unranked = {row.members[1]};
    row.members[1] = model::kNoRow;
  }
  job.comms[other].comm_id = 0;
  std::vector<CommMatch> counts = count_matches(job);
  EXPECT_EQ(unmatched(counts[world], Reason::kNotAligned), 5u);
  EXPECT_EQ(unmatched(counts[world], Reason::kRankAbsent), 5u);
  EXPECT_EQ(unmatched(counts[other], Reason::kCommUnknown), 8u);
}

TEST(Match, PairsCountPerDirection) {
  JobBuilder builder(3);
  uint32_t world = builder.world();
  for (int i = 0; i < 4; ++i) {
    builder.call(0, world, {.func = "Send", .called_ms = 10.0 + i, .peer = 1});
    if (i < 3) builder.call(1, world, {.func = "Recv", .called_ms = 10.0 + i, .peer = 0});
    builder.call(1, world, {.func = "Send", .called_ms = 20.0 + i, .peer = 0});
    builder.call(0, world, {.func = "Recv", .called_ms = 20.0 + i, .peer = 1});
  }
  builder.call(2, world, {.func = "Send", .called_ms = 30, .peer = 2});  // to itself
  builder.call(2, world, {.func = "Recv", .called_ms = 30, .peer = 2});
  Job job = builder.build();
  CommMatch counts = count_matches(job)[0];
  EXPECT_EQ(counts.matched, 2u * 3 + 2u * 4 + 2u);
  EXPECT_EQ(unmatched(counts, Reason::kNotCalled), 1u);
  const Member& first = member(job, world, 0);
  for (const model::Lane& lane : first.lanes) {
    const Member* other = nullptr;
    const model::Lane* there = counterpart(job, first, lane, &other);
    ASSERT_NE(there, nullptr);
    EXPECT_EQ(other, &member(job, world, 1));
    EXPECT_NE(there->is_send, lane.is_send);
  }
}

TEST(Match, PairsOfAWrappedRingDoNotCompare) {
  JobBuilder builder(2);
  uint32_t world = builder.world();
  for (int i = 0; i < 6; ++i) {
    builder.call(0, world, {.func = "Send", .called_ms = 10.0 + i, .peer = 1});
    if (i >= 2) builder.call(1, world, {.func = "Recv", .called_ms = 10.0 + i, .peer = 0});
  }
  wrapped(builder, 1, 2);
  Job job = builder.build();
  CommMatch counts = count_matches(job)[0];
  EXPECT_EQ(counts.matched, 0u);
  EXPECT_EQ(unmatched(counts, Reason::kNotAligned), 10u);
  EXPECT_FALSE(pairs_comparable(job, member(job, world, 0), member(job, world, 1)));
}

TEST(Match, APeerOutsideTheRunIsAbsent) {
  JobBuilder builder(2);
  uint32_t world = builder.world();
  builder.call(0, world, {.func = "Send", .called_ms = 10, .peer = 1});
  builder.call(0, world, {.func = "Send", .called_ms = 10, .peer = 2'000'000'000});
  builder.without(1);
  Job job = builder.build();
  EXPECT_EQ(unmatched(count_matches(job)[0], Reason::kRankAbsent), 2u);
}

TEST(Match, ADifferenceNamesTheMinority) {
  JobBuilder builder(4);
  uint32_t world = builder.world();
  builder.steps(world, 3, 10, 5);
  for (uint32_t rank = 0; rank < 4; ++rank)
    builder.call(rank, world, {.func = "AllReduce", .called_ms = 40, .bytes = rank == 2 ? 64u : 128u});
  builder.steps(world, 3, 50, 5);
  Job job = builder.build();
  std::vector<Difference> found = differences(job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].index, 3u);
  EXPECT_EQ(found[0].members, std::vector<uint32_t>{job.comms[world].members[2]});
  EXPECT_FALSE(found[0].tie);
}

TEST(Match, TwoAgainstTwoIsATie) {
  JobBuilder builder(4);
  uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 4; ++rank)
    builder.call(rank, world, {.func = rank < 2 ? "AllReduce" : "AllGather", .called_ms = 10});
  Job job = builder.build();
  std::vector<Difference> found = differences(job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].tie);
  EXPECT_EQ(found[0].members.size(), 2u);
}

// Three of eight left a file: the other five may all be with the one.
TEST(Match, AMajorityIsOneOfAllRanks) {
  for (const uint32_t absent : {0u, 1u, 3u, 4u, 5u}) {
    JobBuilder builder(8);
    const uint32_t world = builder.world();
    for (uint32_t rank = 0; rank < 8; ++rank)
      builder.call(rank, world, {.func = rank == 7 ? "AllGather" : "AllReduce", .called_ms = 10});
    for (uint32_t rank = 0; rank < absent; ++rank) builder.without(rank);
    const std::vector<Difference> found = differences(builder.build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].unknown, absent);
    EXPECT_EQ(found[0].open, absent > 2) << absent << " of 8 left no file: 7 less those to 1 and those";
  }
}

TEST(Match, WhoHasNotComeSoFarOverturnsNoMajority) {
  for (const bool has_hole : {false, true}) {
    JobBuilder builder(5);
    const uint32_t world = builder.world();
    for (uint32_t rank = 0; rank < 5; ++rank) {
      calls(builder, rank, world, 0, 5);
      if (rank >= 2)
        builder.call(rank, world, {.func = rank == 4 ? "AllGather" : "AllReduce", .called_ms = 15});
    }
    if (has_hole) builder.process(0).lost = builder.process(0).holes = 1;
    const std::vector<Difference> found = differences(builder.build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].unknown, has_hole ? 1u : 0u);
    EXPECT_EQ(found[0].open, has_hole);
  }
}

TEST(Match, ADifferenceThatTheFirstMemberNoLongerHasIsFound) {
  JobBuilder builder(3);
  uint32_t world = builder.world();
  calls(builder, 0, world, 6, 10);
  wrapped(builder, 0, 6);
  for (uint32_t rank : {1u, 2u}) {
    for (uint32_t seq = 0; seq < 10; ++seq)
      builder.call(rank, world,
                   {.called_ms = 10.0 + seq, .bytes = rank == 2 && seq == 4 ? 8u : 1u << 20, .seq = seq});
  }
  Job job = builder.build();
  std::vector<Difference> found = differences(job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].index, 4u);
  EXPECT_TRUE(found[0].tie);
}

TEST(Match, AlgorithmAndProtocolMayDiffer) {
  JobBuilder builder(2);
  uint32_t world = builder.world();
  builder.call(0, world, {.called_ms = 10, .algo = "RING", .proto = "LL"});
  builder.call(1, world, {.called_ms = 10, .algo = "TREE", .proto = "SIMPLE"});
  EXPECT_TRUE(differences(builder.build()).empty());
}

TEST(Match, NumbersAtTheEndOfTheirRangeAreHarmless) {
  JobBuilder builder(3);
  uint32_t world = builder.world();
  calls(builder, 0, world, 0xfffffff0, 0xfffffffe);
  calls(builder, 1, world, 0, 3);
  calls(builder, 1, world, 0xfffffff8, 0xfffffffe);
  calls(builder, 2, world, 7, 9, "Broadcast");
  for (uint32_t rank = 0; rank < 3; ++rank) wrapped(builder, rank, 1);
  Job job = builder.build();
  count_matches(job);
  differences(job);
  EXPECT_EQ(member(job, world, 2).alignment, Member::Alignment::kNone);
}

// A recording of a part of each rank's life: of the operations first..end-1 of a program that repeats after
// five, as a step does. Operation n is called at n ms.
JobBuilder windows(const std::vector<std::pair<uint32_t, uint32_t>>& parts, bool have_steps,
                   uint32_t* world) {
  JobBuilder builder(static_cast<uint32_t>(parts.size()));
  *world = builder.world();
  for (uint32_t rank = 0; rank < parts.size(); ++rank) {
    model::JobProcess& process = builder.process(rank);
    process.row.window = static_cast<uint8_t>(model::Window::kCounted);
    for (uint32_t n = parts[rank].first; n < parts[rank].second; ++n) {
      if (have_steps && n % 5 == 0)
        process.marks.push_back({0, 0, 0, int64_t{n} / 5, 1, analysis::testing::at_ms(n - 0.5)});
      builder.call(
          rank, *world,
          {.func = n % 5 == 0 ? "AllGather" : "AllReduce", .called_ms = 1.0 * n, .seq = model::kNoIndex});
    }
  }
  return builder;
}

// The seqs that a profiler's recording does not have.
Job build(JobBuilder& builder) {
  Job job = builder.build();
  for (model::JobProcess& process : job.processes)
    std::fill(process.ops.seq.begin(), process.ops.seq.end(), model::kNoIndex);
  align(job);
  return job;
}

TEST(Match, WindowsAreLaidOverEachOtherByTheirSteps) {
  uint32_t world = 0;
  JobBuilder builder = windows({{10, 30}, {20, 30}, {8, 25}}, true, &world);
  const Job job = build(builder);
  EXPECT_EQ(indexes(job, world, 0).front(), 2u);
  EXPECT_EQ(indexes(job, world, 1).front(), 12u);
  EXPECT_EQ(indexes(job, world, 2).front(), 0u);
  EXPECT_TRUE(differences(job).empty());
  const std::vector<CommMatch> counts = count_matches(job);
  EXPECT_EQ(counts[0].matched, 15u) << "20 to 24 on three ranks";
  EXPECT_FALSE(pairs_comparable(job, member(job, world, 0), member(job, world, 1)))
      << "sends before step 4 are on one side only";
}

TEST(Match, WindowsWithoutStepsAreLaidOverEachOtherByWhatWasCalled) {
  uint32_t world = 0;
  JobBuilder builder = windows({{10, 40}, {12, 41}}, false, &world);
  const Job job = build(builder);
  EXPECT_EQ(indexes(job, world, 0).front(), 0u);
  EXPECT_EQ(indexes(job, world, 1).front(), 2u);
  EXPECT_TRUE(differences(job).empty());
  EXPECT_TRUE(pairs_comparable(job, member(job, world, 0), member(job, world, 1)));
}

TEST(Match, WindowsOfDifferentStepsDoNotCompare) {
  uint32_t world = 0;
  JobBuilder builder = windows({{10, 30}, {50, 60}}, true, &world);
  const Job job = build(builder);
  EXPECT_EQ(member(job, world, 1).alignment, Member::Alignment::kNone);
  EXPECT_EQ(count_matches(job)[0].matched, 0u);
}

TEST(Match, WindowsThatDifferStayAtTheSharedStep) {
  uint32_t world = 0;
  JobBuilder builder = windows({{10, 20}, {10, 20}}, true, &world);
  builder.call(1, world, {.func = "Broadcast", .called_ms = 20});
  builder.call(0, world, {.func = "AllGather", .called_ms = 20});
  const Job job = build(builder);
  ASSERT_EQ(differences(job).size(), 1u);
  EXPECT_EQ(differences(job)[0].index, 10u);
}

// NCCL reports a gather as bytes. The record of rank 1's call, which says what was asked for, is gone.
Job gathers(const std::string& second_type, uint64_t second_bytes, bool call_is_gone) {
  JobBuilder builder(3);
  const uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Call call{.func = "AllGather", .called_ms = 10, .bytes = 4096, .datatype = "ncclBfloat16"};
    if (rank == 1) call.bytes = second_bytes, call.datatype = second_type;
    builder.call(rank, world, call);
  }
  Job job = builder.build();
  if (call_is_gone) job.processes[1].ops.called_ns[0] = 0;
  return job;
}

TEST(Match, ATypeWhoseCallIsGoneIsNoDifference) {
  EXPECT_TRUE(differences(gathers("ncclInt8", 4096, true)).empty());
  // Where the call is there, the program asked for bytes; and as many bytes it has to be.
  EXPECT_EQ(differences(gathers("ncclInt8", 4096, false)).size(), 1u);
  EXPECT_EQ(differences(gathers("ncclInt8", 4097, true)).size(), 1u);
  // A type that NCCL does not make of another one.
  EXPECT_EQ(differences(gathers("ncclFloat32", 4096, true)).size(), 1u);
}

TEST(Match, ATypeThatIsNotKnownTakesTheSideThatItMayBeOf) {
  JobBuilder builder(4);
  const uint32_t world = builder.world();
  const char* types[] = {"ncclInt8", "ncclBfloat16", "ncclBfloat16", "ncclFloat32"};
  for (uint32_t rank = 0; rank < 4; ++rank)
    builder.call(
        rank, world,
        {.func = "Broadcast", .called_ms = 10, .bytes = rank == 3 ? 4096u : 2048u, .datatype = types[rank]});
  Job job = builder.build();
  job.processes[0].ops.called_ns[0] = 0;
  const std::vector<Difference> found = differences(job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].members, std::vector<uint32_t>{job.comms[world].members[3]});
  EXPECT_FALSE(found[0].tie);
}

TEST(Match, AGapOfOneOperationIsSeenThoughNothingWasCounted) {
  JobBuilder builder(2);
  const uint32_t world = builder.world();
  calls(builder, 0, world, 0, 10);
  calls(builder, 1, world, 0, 4);
  calls(builder, 1, world, 5, 10);
  const Job job = builder.build();
  EXPECT_EQ(member(job, world, 1).alignment, Member::Alignment::kBySeq);
  EXPECT_EQ(indexes(job, world, 1), (std::vector<uint32_t>{0, 1, 2, 3, 5, 6, 7, 8, 9}));
}

// Windows without steps, of operations of growing size, from `first` on.
Member::Alignment alignment_of_window(uint32_t first) {
  JobBuilder builder(2);
  const uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    builder.process(rank).row.window = static_cast<uint8_t>(model::Window::kCounted);
    for (uint32_t i = 0; i < 8; ++i)
      builder.call(rank, world, {.called_ms = 10.0 + i, .bytes = 1000u + i + (rank == 1 ? first : 0)});
  }
  const Job job = builder.build();
  return member(job, world, 1).alignment;
}

TEST(Match, WindowsShareHalfOfTheShorterAtLeast) {
  EXPECT_EQ(alignment_of_window(4), Member::Alignment::kFromStart);
  EXPECT_EQ(alignment_of_window(5), Member::Alignment::kNone);
}

TEST(Match, OperationsOfAMemberOfUnknownRankAreCountedAll) {
  JobBuilder builder(2);
  const uint32_t world = builder.world();
  calls(builder, 0, world, 0, 10);
  for (int i = 0; i < 4; ++i) builder.call(0, world, {.func = "Send", .called_ms = 30.0 + i, .peer = 1});
  for (int i = 0; i < 3; ++i) builder.call(0, world, {.func = "Recv", .called_ms = 40.0 + i, .peer = 1});
  Job job = builder.build();
  model::JobComm& comm = job.comms[world];
  comm.comm_id = 7;
  comm.unranked = {comm.members[0]};
  comm.members[0] = model::kNoRow;
  const CommMatch counts = count_matches(job)[0];
  EXPECT_EQ(counts.matched, 0u);
  EXPECT_EQ(unmatched(counts, Reason::kNotAligned), 10u + 4u + 3u);
}

}  // namespace
}  // namespace lockstep::job::match
