// SPDX-License-Identifier: Apache-2.0
// Which of several operations a stopped rank would have called first, and calls in another order.
#include "analysis/hang/calls/call_order.h"

#include <gtest/gtest.h>

#include <functional>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::hang {
extern const Analysis kAnalysis;
namespace {

using testing::JobBuilder;

constexpr double kUntilMs = 60'000;

Finding only_finding(JobBuilder& job) {
  job.all_killed_at(kUntilMs);
  std::vector<Finding> findings;
  model::Job built = job.build();
  kAnalysis.run(built, findings);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Finding(FindingId{}) : findings.front();
}

// Four ranks in pairs: each step two operations of the pair, then one of the world.
struct Pairs {
  JobBuilder job{4};
  uint32_t world = job.world(), left = job.comm("left", {0, 1}), right = job.comm("right", {2, 3});

  uint32_t pair(uint32_t rank) const { return rank < 2 ? left : right; }
  void step(uint32_t rank, double ms) {
    job.call(rank, pair(rank), {.called_ms = ms});
    job.call(rank, pair(rank), {.func = "AllGather", .called_ms = ms + 1});
    job.call(rank, world, {.called_ms = ms + 2});
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      for (uint32_t rank = 0; rank < 4; ++rank) step(rank, 100.0 * i);
    }
  }
};

TEST(CallOrder, AStoppedRankIsMissedFirstWhereItAlwaysWentNext) {
  Pairs pairs;
  pairs.steps(10);
  // Rank 3 stops before the second step's AllGather. The others run ahead; the world's operation was called
  // first by rank 0, so that its wait is the longest.
  pairs.step(0, 990);
  pairs.step(1, 991);
  pairs.step(2, 1000);
  pairs.job.call(3, pairs.right, {.called_ms = 1000});
  Finding finding = only_finding(pairs.job);
  EXPECT_EQ(class_of(finding.id), FindingClass::kNeverJoined);
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{3});
  EXPECT_EQ(finding.comm, "right");
  EXPECT_EQ(finding.op_index, 21);
}

// Each step calls the pair's operation; then a graph runs that was captured at 0 ms, with the world's.
TEST(CallOrder, AReplayHasItsPlaceWhereItsGraphRan) {
  Pairs pairs;
  auto call = [&](uint32_t rank, double ms) { pairs.job.call(rank, pairs.pair(rank), {.called_ms = ms}); };
  auto replay = [&](uint32_t rank, double ms) {
    pairs.job.call(rank, pairs.world, {.called_ms = 0, .replayed_ms = ms});
  };
  for (int i = 1; i < 20; ++i) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      call(rank, 100.0 * i);
      replay(rank, 100.0 * i + 2);
    }
  }
  call(3, 2'000);
  const model::Job job = pairs.job.build();
  Cadence cadence(job);
  const JobState job_state(job, cadence);
  const CallOrder order(job_state, 3);
  EXPECT_EQ(order.until(pairs.world, false), 0u);
  EXPECT_EQ(order.until(pairs.right, false), 1u);
}

// Rank 0 calls a and b in each step, now in this and now in the other order where it is free, and then once
// more: b before a.
CallOrder::Habit habit_of_last(bool is_free, int extra) {
  JobBuilder job(2);
  const uint32_t a = job.comm("a", {0, 1}), b = job.comm("b", {0, 1}), other = job.comm("other", {0, 1});
  double ms = 0;
  for (int step = 0; step < 12; ++step) {
    for (int i = 0; i < 6; ++i) job.call(0, i % 2 == 0 ? other : a, {.called_ms = ++ms});
    const bool swaps = is_free && (0b0110'1001'1010 >> step & 1) != 0;
    for (const uint32_t comm : {swaps ? b : a, swaps ? a : b}) job.call(0, comm, {.called_ms = ++ms});
  }
  for (int i = 0; i < 6 + extra; ++i) job.call(0, i % 2 == 0 || i >= 6 ? other : a, {.called_ms = ++ms});
  for (const uint32_t comm : {b, a}) job.call(0, comm, {.called_ms = ++ms});
  const model::Job built = job.build();
  Cadence cadence(built);
  const JobState job_state(built, cadence);
  return CallOrder(job_state, 0)
      .habit({.comm = b, .entered_ns = testing::at_ms(ms - 1)},
             {.comm = a, .entered_ns = testing::at_ms(ms)});
}

TEST(CallOrder, ARankIsHeldToTheOrderThatItKept) {
  EXPECT_EQ(habit_of_last(false, 0), CallOrder::Habit::kBroken);
}

TEST(CallOrder, AFreeOrderIsNoHabit) { EXPECT_EQ(habit_of_last(true, 0), CallOrder::Habit::kUnknown); }

// So many of the same before it: where the rank was is not known.
TEST(CallOrder, CallsThatWereNeverMadeBeforeTellNoHabit) {
  EXPECT_EQ(habit_of_last(false, 12), CallOrder::Habit::kUnknown);
}

TEST(CallOrder, WhatIsNotCalledYetHasAnOrderToo) {
  JobBuilder job(2);
  const uint32_t a = job.comm("a", {0, 1}), b = job.comm("b", {0, 1});
  for (int i = 0; i < 20; ++i) {
    job.call(0, a, {.called_ms = 10.0 * i});
    job.call(0, b, {.called_ms = 10.0 * i + 1});
  }
  job.call(0, a, {.called_ms = 200});
  const model::Job built = job.build();
  Cadence cadence(built);
  const JobState job_state(built, cadence);
  const CallOrder order(job_state, 0);
  EXPECT_EQ(order.habit({.comm = a, .entered_ns = testing::at_ms(200)}, {.comm = b}),
            CallOrder::Habit::kKept);
  EXPECT_EQ(order.habit({.comm = b, .entered_ns = testing::at_ms(191)}, {.comm = a}),
            CallOrder::Habit::kKept);
  EXPECT_EQ(order.habit({.comm = a, .entered_ns = testing::at_ms(201)}, {.comm = b}),
            CallOrder::Habit::kUnknown);
}

TEST(CallOrder, AKernelThatHasNotBegunIsNamedWhereTheRankCalledFirst) {
  Pairs pairs;
  for (int i = 0; i < 10; ++i) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      double ms = 100.0 * i;
      pairs.job.call(rank, pairs.pair(rank), {.called_ms = ms, .gpu_start_ms = ms + 1, .gpu_end_ms = ms + 2});
      pairs.job.call(rank, pairs.world, {.called_ms = ms + 3, .gpu_start_ms = ms + 4, .gpu_end_ms = ms + 5});
    }
  }
  // Something holds rank 3's GPU. Ranks 0 and 1 wait for it in the world's operation, and longer than rank 2
  // in the pair's.
  for (uint32_t rank = 0; rank < 4; ++rank) {
    double ms = rank < 2 ? 990 : 1000;
    bool held = rank == 3, waits_in_pair = rank == 2;
    pairs.job.call(
        rank, pairs.pair(rank),
        {.called_ms = ms, .gpu_start_ms = held ? -1 : ms + 1, .gpu_end_ms = rank < 2 ? ms + 2 : -1});
    pairs.job.call(rank, pairs.world,
                   {.called_ms = ms + 3, .gpu_start_ms = held || waits_in_pair ? -1 : ms + 4});
  }
  Finding finding = only_finding(pairs.job);
  EXPECT_EQ(class_of(finding.id), FindingClass::kStuckInGpu);
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{3});
  EXPECT_EQ(finding.comm, "right");
  EXPECT_EQ(finding.op_index, 10);
}

TEST(CallOrder, ADifferenceComesBeforeManyLongerWaits) {
  JobBuilder job(4);
  std::vector<uint32_t> comms{job.world()};
  for (int i = 0; i < 80; ++i) comms.push_back(job.comm("c" + std::to_string(i), {0, 1, 2, 3}));
  for (int i = 0; i < 10; ++i) {
    for (uint32_t comm : comms) {
      for (uint32_t rank = 0; rank < 4; ++rank) job.call(rank, comm, {.called_ms = 100.0 * i});
    }
  }
  for (uint32_t rank = 0; rank < 4; ++rank) {
    for (uint32_t comm : comms) {
      if (comm != comms[0] && rank != 3) job.call(rank, comm, {.called_ms = 1000});
    }
    job.call(rank, comms[0], {.func = rank == 3 ? "AllGather" : "AllReduce", .called_ms = 2000});
  }
  Finding finding = only_finding(job);
  EXPECT_EQ(class_of(finding.id), FindingClass::kJoinedOtherOp);
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{3});
}

// Two communicators of the same four ranks, called one after the other; by whom and when the other way round,
// `swapped` says.
Finding finding_of_swaps(const std::function<bool(uint32_t step, uint32_t rank)>& swapped) {
  JobBuilder job(4);
  uint32_t world = job.world(), data = job.comm("data", {0, 1, 2, 3});
  for (uint32_t i = 0; i <= 10; ++i) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      bool odd = swapped(i, rank);
      job.call(rank, odd ? world : data, {.called_ms = 100.0 * i});
      job.call(rank, odd ? data : world, {.called_ms = 100.0 * i + 1});
    }
  }
  return only_finding(job);
}

TEST(CallOrder, CallsTheOtherWayRoundAreADeadlockWhereAllStandsStill) {
  Finding finding = finding_of_swaps([](uint32_t i, uint32_t rank) { return i == 10 && rank == 2; });
  EXPECT_EQ(id_text(finding.id), "cross-comm-deadlock.order");
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
}

TEST(CallOrder, WhereTheOrderIsFreeItTellsNothing) {
  Finding finding = finding_of_swaps([](uint32_t i, uint32_t rank) { return (i + rank) % 3 == 0; });
  EXPECT_EQ(id_text(finding.id), "evidence-missing.gpu-times");
}

TEST(CallOrder, WhoWaitsForRanksWithoutAFileIsNotBlamed) {
  JobBuilder job(6, 2);
  uint32_t world = job.world(), data = job.comm("data", {0, 2, 4});
  for (int i = 0; i <= 10; ++i) {
    for (uint32_t rank = 0; rank < 6; ++rank) {
      if (rank % 2 == 0) job.call(rank, data, {.called_ms = 100.0 * i});
      // In the last step those who share a group with rank 4 do not get to the world's.
      if (i < 10 || rank % 2 == 1) job.call(rank, world, {.called_ms = 100.0 * i + 1});
    }
  }
  job.without(4);
  job.without(5);
  Finding finding = only_finding(job);
  EXPECT_EQ(class_of(finding.id), FindingClass::kRankUnreachable);
  EXPECT_EQ(finding.ranks, (std::vector<int32_t>{4, 5}));
}

// Rank 3 comes to the world's operation before its pair's, where rank 2 waits for it. Ranks 0 and 1 have
// called their pair's, and do not come to the world's: they may be inside, where they need what the others
// would have sent.
TEST(CallOrder, WhoMayBeHeldUpByADeadlockIsNotBlamedForIt) {
  for (const bool has_ended : {false, true}) {
    JobBuilder job(4);
    const uint32_t world = job.world(), left = job.comm("left", {0, 1}), right = job.comm("right", {2, 3});
    for (int step = 0; step < 10; ++step) {
      for (uint32_t rank = 0; rank < 4; ++rank) {
        job.call(rank, rank < 2 ? left : right, {.called_ms = 100.0 * step});
        job.call(rank, world, {.called_ms = 100.0 * step + 1});
      }
    }
    for (uint32_t rank : {0u, 1u}) {
      testing::Call call{.called_ms = 1000};
      if (has_ended) call.gpu_start_ms = 1000.5, call.gpu_end_ms = 1001;
      job.call(rank, left, call);
    }
    job.call(2, right, {.called_ms = 1000});
    job.call(3, world, {.called_ms = 1000});
    job.all_killed_at(kUntilMs);
    std::vector<Finding> findings;
    kAnalysis.run(job.build(), findings);
    std::vector<int32_t> never_joined;
    bool is_found = false;
    for (const Finding& finding : findings) {
      if (class_of(finding.id) == FindingClass::kNeverJoined) never_joined = finding.ranks;
      if (class_of(finding.id) != FindingClass::kCrossCommDeadlock) continue;
      is_found = true;
      EXPECT_EQ(finding.ranks, std::vector<int32_t>{3});
    }
    EXPECT_TRUE(is_found);
    EXPECT_EQ(never_joined, has_ended ? (std::vector<int32_t>{0, 1}) : std::vector<int32_t>{}) << has_ended;
  }
}

}  // namespace
}  // namespace lockstep::analysis::hang
