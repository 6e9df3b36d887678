// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/cost/delay_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {
namespace {

using testing::JobBuilder;

constexpr double kMs = 1e6;

LateOp late_at(double ms, double blame_ms, double error_ms = 0, bool timed = true) {
  return {.host_ns = testing::at_ms(ms),
          .blame_ns = static_cast<float>(blame_ms * kMs),
          .timed = timed,
          .error_ns = static_cast<float>(error_ms * kMs)};
}

// Ranks of one host whose programs mark their steps; each rank is late where a test says so.
class Marked {
 public:
  explicit Marked(uint32_t ranks, bool timed = true)
      : builder_(ranks), late_(ranks), blamed_ms_(ranks), timed_(timed) {}

  // Steps of a rank, which begin then; numbered from `first` on.
  void steps(uint32_t rank, const std::vector<double>& begin_ms, int64_t first = 0) {
    for (size_t i = 0; i < begin_ms.size(); ++i) {
      model::Mark mark{};
      mark.value = first + static_cast<int64_t>(i);
      mark.is_step = 1;
      mark.time_ns = testing::at_ms(begin_ms[i]);
      builder_.process(rank).marks.push_back(mark);
    }
  }
  // Steps of rank 0 that take so long, one after the other.
  void lengths(const std::vector<double>& ms) {
    std::vector<double> begin = {0};
    for (double length : ms) begin.push_back(begin.back() + length);
    steps(0, begin);
  }
  void late(uint32_t rank, const LateOp& late) {
    late_[rank].push_back(late);
    blamed_ms_[rank] += static_cast<double>(late.blame_ns) / kMs;
  }
  void domain(uint32_t rank, uint32_t number) { domains_[rank] = number; }
  JobBuilder& builder() { return builder_; }

  std::optional<DelayCost> sum(double span_ms = 1000) {
    const model::Job job = builder_.build();
    Lateness lateness;
    lateness.late = late_;
    lateness.processes.resize(late_.size());
    lateness.domains.assign(late_.size(), 0);
    for (const auto& [rank, number] : domains_) lateness.domains[rank] = number;
    for (size_t rank = 0; rank < late_.size(); ++rank) {
      lateness.processes[rank].blamed_ns = blamed_ms_[rank] * kMs;
      lateness.processes[rank].ops = 1;
    }
    lateness.processes.back().ops = without_ops_ ? 0 : 1;
    lateness.span_ns = static_cast<int64_t>(span_ms * kMs);
    lateness.compared = 10;
    lateness.timed = timed_ ? 5 : 4;
    return sum_delay_cost(job, lateness);
  }
  void last_has_no_ops() { without_ops_ = true; }

 private:
  JobBuilder builder_;
  std::vector<std::vector<LateOp>> late_;
  std::vector<double> blamed_ms_;
  std::map<uint32_t, uint32_t> domains_;
  bool timed_, without_ops_ = false;
};

std::vector<double> every_10_ms(size_t count, double first_ms = 0) {
  std::vector<double> begin;
  for (size_t i = 0; i < count; ++i) begin.push_back(first_ms + 10.0 * static_cast<double>(i));
  return begin;
}

// What each step costs, in ms; steps that cost nothing are left out.
std::map<size_t, double> in_ms(const std::vector<float>& by_step) {
  std::map<size_t, double> out;
  for (size_t step = 0; step < by_step.size(); ++step) {
    if (by_step[step] != 0) out[step] = std::round(static_cast<double>(by_step[step]) / kMs * 1000) / 1000;
  }
  return out;
}
using ByStep = std::map<size_t, double>;

TEST(DelayCost, IsNothingWhereNobodyIsToBlame) {
  Marked run(2);
  run.steps(0, every_10_ms(20));
  EXPECT_FALSE(run.sum()) << "and nobody has called anything";
}

// The first step that counts where the first `warm` of them take `ms` and the others 10 ms.
size_t first_of(size_t steps, size_t warm, double ms) {
  Marked run(1);
  std::vector<double> lengths(steps - 1, 10);
  std::fill_n(lengths.begin(), warm, ms);
  run.lengths(lengths);
  run.late(0, late_at(static_cast<double>(warm) * ms + 101, 1));
  return run.sum()->first;
}

TEST(DelayCost, TwoStepsWarmUpAndMoreWhileTheyAreHalfAsLongAgain) {
  EXPECT_EQ(first_of(100, 0, 10), 2u);
  EXPECT_EQ(first_of(100, 5, 15.1), 5u);
  EXPECT_EQ(first_of(100, 5, 14.9), 2u);
  EXPECT_EQ(first_of(5, 0, 10), 2u);
}

TEST(DelayCost, NoMoreThanATenthWarmsUpNorMoreThanSixteen) {
  EXPECT_EQ(first_of(100, 12, 30), 10u);
  EXPECT_EQ(first_of(200, 20, 30), 16u);
  EXPECT_EQ(first_of(29, 5, 30), 2u);
  EXPECT_EQ(first_of(30, 5, 30), 3u);
}

TEST(DelayCost, OfOneStepAlone) {
  Marked run(2);
  const uint32_t world = run.builder().world();
  for (uint32_t rank : {0u, 1u}) run.builder().call(rank, world, {.called_ms = 1});
  run.late(0, late_at(2, 3));
  const auto costs = run.sum();
  ASSERT_TRUE(costs);
  EXPECT_EQ(costs->steps.size(), 1u);
  EXPECT_EQ(costs->first, 1u);
  EXPECT_EQ(in_ms(costs->ranks[0].by_step), (ByStep{{0, 3}}));
}

// One step takes 30 ms and the others 10: it and its neighbor take 20 ms longer, half of which is set aside.
TEST(DelayCost, HalfOfAPauseIsSetAside) {
  const auto uneven = [](size_t at) {
    Marked run(1);
    std::vector<double> lengths(39, 10);
    lengths[at] = 30;
    run.lengths(lengths);
    run.late(0, late_at(55, 0.5));
    const auto costs = run.sum();
    EXPECT_EQ(costs->usual_step_ns, 10 * kMs);
    auto out = in_ms(costs->uneven_ns);
    EXPECT_EQ(costs->uneven_ns.size(), 40u);
    std::erase_if(out, [](const auto& of) { return of.second < 1; });  // what rank 0 was late by
    return out;
  };
  EXPECT_EQ(uneven(20), (ByStep{{20, 10}, {21, 10}}));
  EXPECT_EQ(uneven(0), (ByStep{{1, 10}}));
  EXPECT_EQ(uneven(38), (ByStep{{38, 10}, {39, 10}}));
}

// A change for good is no pause, but for the steps beside it.
TEST(DelayCost, StepsThatStayLongerAreNoPause) {
  Marked run(1);
  std::vector<double> lengths(39, 10);
  std::fill(lengths.begin() + 20, lengths.end(), 14);
  run.lengths(lengths);
  run.late(0, late_at(5, 0.5));
  EXPECT_EQ(in_ms(run.sum()->uneven_ns), (ByStep{{20, 2}}));
}

// Of the 20 ms by which step 20 is longer than others, one rank lost 8 and another 5 at once.
TEST(DelayCost, WhatSomebodyLostIsNoPause) {
  Marked run(2);
  std::vector<double> lengths(39, 10);
  lengths[20] = 30;
  run.lengths(lengths);
  run.late(0, late_at(201, 8));
  run.late(1, late_at(202, 5));
  EXPECT_EQ(in_ms(run.sum()->uneven_ns), (ByStep{{20, 6}, {21, 6}}));
}

// Somebody loses 4 of the 10 ms of every step: a step usually takes 6 ms.
TEST(DelayCost, AStepUsuallyTakesWhatItTakesWithoutDelays) {
  Marked run(1);
  run.lengths(std::vector<double>(39, 10));
  for (int step = 0; step < 40; ++step) run.late(0, late_at(step * 10 + 1, 4));
  EXPECT_EQ(in_ms(run.sum()->uneven_ns), ByStep{});
}

TEST(DelayCost, AddsUpByStep) {
  Marked run(2);
  run.steps(0, every_10_ms(20));
  run.late(0, late_at(31, 0.9, 0.5));
  run.late(0, late_at(32, 1.1, 2));
  run.late(0, late_at(33, 2, 0));
  run.late(0, late_at(70, 3, 0.6));
  run.late(1, late_at(34, 1));
  const auto costs = run.sum();
  ASSERT_EQ(costs->ranks.size(), 2u);
  const RankCost& rank = costs->ranks[0];
  EXPECT_EQ(in_ms(rank.by_step), (ByStep{{3, 4}, {7, 3}}));
  EXPECT_EQ(in_ms(rank.peaks), (ByStep{{3, 3.1}, {7, 3}})) << "a delay takes a tick";
  EXPECT_EQ(rank.late_ns[3], testing::at_ms(32)) << "0.9 ms are less than a quarter of 4";
  EXPECT_EQ(rank.late_ns[7], testing::at_ms(70));
  EXPECT_EQ(rank.late_ns[4], 0);
  EXPECT_NEAR(rank.sure_share, (0.4 + 0 + 2 + 2.4) / 7, 1e-6);
  EXPECT_EQ(in_ms(costs->ranks[1].peaks), (ByStep{{3, 1}})) << "just a tick";
  EXPECT_EQ(costs->span_ns, 1000 * kMs);
  EXPECT_EQ(costs->compared_ranks, 2u);
  EXPECT_TRUE(costs->timed) << "half of the operations";
}

TEST(DelayCost, AQuarterOfAStepsLossIsAGoodPart) {
  Marked run(1);
  run.steps(0, every_10_ms(20));
  run.late(0, late_at(31, 1));
  run.late(0, late_at(32, 3));
  EXPECT_EQ(run.sum()->ranks[0].late_ns[3], testing::at_ms(31));
}

TEST(DelayCost, ByHostsAloneADelayTakesTwoTicksAndLessThanOneCostsNobody) {
  Marked run(2, false);
  run.steps(0, every_10_ms(20));
  run.late(0, late_at(31, 0.99, 0, false));
  run.late(0, late_at(41, 1, 0, false));
  run.late(0, late_at(42, 1.99, 0, false));
  run.late(0, late_at(51, 2, 0, false));
  LateOp fresh = late_at(61, 0.5, 0, false);
  fresh.fresh = true;
  run.late(0, fresh);
  run.last_has_no_ops();
  const auto costs = run.sum();
  EXPECT_FALSE(costs->timed);
  EXPECT_EQ(costs->compared_ranks, 1u);
  EXPECT_EQ(in_ms(costs->ranks[0].by_step), (ByStep{{4, 2.99}, {5, 2}, {6, 0.5}}));
  EXPECT_EQ(in_ms(costs->ranks[0].peaks), (ByStep{{5, 2}}));
  EXPECT_EQ(costs->ranks[0].late_ns[3], 0);
}

TEST(DelayCost, WhoIsBlamedForNothingThatCostsIsSure) {
  Marked run(1, false);
  run.steps(0, every_10_ms(20));
  run.late(0, late_at(31, 0.5, 0.5, false));
  EXPECT_EQ(run.sum()->ranks[0].sure_share, 1);
}

TEST(DelayCost, ALaunchThatSeemsTwoMicrosecondsBeforeAStepIsOfIt) {
  Marked run(1);
  run.steps(0, every_10_ms(20));
  LateOp late = late_at(50, 3);
  late.host_ns -= 2'000;
  run.late(0, late);
  late.host_ns -= 1;
  late.blame_ns = 1 * kMs;
  run.late(0, late);
  EXPECT_EQ(in_ms(run.sum()->ranks[0].by_step), (ByStep{{4, 1}, {5, 3}}));
}

// What is launched before rank 0's first step, and after its last one has begun.
TEST(DelayCost, StepsHaveNoEnd) {
  Marked run(1);
  run.steps(0, every_10_ms(20, 100));
  run.late(0, late_at(1, 2));
  run.late(0, late_at(9'000, 3));
  EXPECT_EQ(in_ms(run.sum()->ranks[0].by_step), (ByStep{{0, 2}, {19, 3}}));
}

// Where rank 1, whose steps begin then, is late by a launch at `launch_ms`. The steps of rank 0 count.
ByStep by_own_steps(double own_first_ms, size_t own_count, double launch_ms, double blame_ms = 3) {
  Marked run(2);
  run.steps(0, every_10_ms(40));
  run.steps(1, every_10_ms(own_count, own_first_ms));
  run.late(0, late_at(5, 100));
  run.late(1, late_at(launch_ms, blame_ms));
  const auto costs = run.sum();
  EXPECT_EQ(costs->ranks.at(1).process, 1u);
  return in_ms(costs->ranks.at(1).by_step);
}

TEST(DelayCost, OtherRanksHaveStepsOfTheirOwn) {
  EXPECT_EQ(by_own_steps(4, 40, 92), (ByStep{{8, 3}})) << "its ninth step begins at 94 ms";
  EXPECT_EQ(by_own_steps(4, 40, 95), (ByStep{{9, 3}}));
  EXPECT_EQ(by_own_steps(-4 + 10, 39, 97), (ByStep{{10, 3}})) << "96 ms are next to 100";
  EXPECT_EQ(by_own_steps(4, 40, 92, 1.9), (ByStep{{9, 1.9}}))
      << "less than two thousandths of the run: by time";
  EXPECT_EQ(by_own_steps(4, 40, 92, 2.1), (ByStep{{8, 2.1}}));
}

TEST(DelayCost, ARingHasKeptFewerStepsOfOne) {
  EXPECT_EQ(by_own_steps(304, 10, 332), (ByStep{{32, 3}})) << "the third of its ten, which begin at step 30";
  EXPECT_EQ(by_own_steps(304, 10, 1), (ByStep{{30, 3}})) << "before all of them";
  EXPECT_EQ(by_own_steps(384, 10, 460), (ByStep{{39, 3}})) << "rank 0 has no such step";
  EXPECT_EQ(by_own_steps(304, 3, 332), (ByStep{{32, 3}}));
  EXPECT_EQ(by_own_steps(304, 2, 332), (ByStep{{33, 3}})) << "two marks are no steps: by time";
}

// Rank 0 marks its steps, rank 1 does not: by time.
TEST(DelayCost, StepsOfAnotherKindDoNotCount) {
  Marked run(2);
  const uint32_t world = run.builder().world();
  for (int step = 0; step < 40; ++step) run.builder().call(1, world, {.called_ms = step * 10.0 + 4});
  run.steps(0, every_10_ms(40));
  run.late(0, late_at(5, 100));
  run.late(1, late_at(92, 3));
  EXPECT_EQ(in_ms(run.sum()->ranks.at(1).by_step), (ByStep{{9, 3}}));
}

TEST(DelayCost, EachClockHasTheStepsOfItsRankWithTheMostBlame) {
  Marked run(4);
  for (uint32_t rank : {0u, 1u}) run.steps(rank, every_10_ms(20));
  run.steps(2, every_10_ms(20, 1000));
  run.steps(3, every_10_ms(20, 1003));
  for (uint32_t rank : {2u, 3u}) run.domain(rank, 7);
  run.late(1, late_at(31, 50));
  run.late(0, late_at(41, 2));
  run.late(2, late_at(1061, 3));
  run.late(3, late_at(1071, 4));
  const auto costs = run.sum();
  ASSERT_EQ(costs->ranks.size(), 4u);
  std::vector<uint32_t> order;
  std::vector<size_t> clocks;
  for (const RankCost& rank : costs->ranks) {
    order.push_back(rank.process);
    clocks.push_back(rank.clock);
  }
  EXPECT_EQ(order, (std::vector<uint32_t>{1, 3, 2, 0})) << "the most blame first";
  EXPECT_EQ(clocks, (std::vector<size_t>{0, 1, 1, 0}));
  ASSERT_EQ(costs->steps_by_clock.size(), 2u);
  EXPECT_EQ(costs->steps_by_clock[1].begin_ns[0], testing::at_ms(1003));
  EXPECT_EQ(in_ms(costs->ranks[1].by_step), (ByStep{{6, 4}}));
  EXPECT_EQ(in_ms(costs->ranks[2].by_step), (ByStep{{6, 3}})) << "of its own steps";
}

TEST(DelayCost, OfManyRanksTheMostByStepIsKept) {
  constexpr uint32_t kRanks = DelayCost::kMostRanks + 3;
  Marked run(kRanks);
  run.steps(0, every_10_ms(40));
  run.late(0, late_at(5, 1000));
  for (uint32_t rank = 1; rank + 2 < kRanks; ++rank) run.late(rank, late_at(11, 10));
  run.late(kRanks - 3, late_at(31, 0.1));
  run.late(kRanks - 2, late_at(21, 3));
  run.late(kRanks - 1, late_at(21, 2));
  run.late(kRanks - 1, late_at(31, 0.5));
  const auto costs = run.sum();
  EXPECT_EQ(costs->ranks.size(), DelayCost::kMostRanks);
  EXPECT_EQ(in_ms(costs->others), (ByStep{{1, 10}, {2, 3}, {3, 0.5}}));
  EXPECT_EQ(costs->compared_ranks, kRanks);
}

TEST(DelayCost, KnowsWhomARankExchangesMessagesWith) {
  Marked run(4);
  run.steps(2, every_10_ms(20));
  JobBuilder& builder = run.builder();
  const uint32_t pipeline = builder.comm("pp", {3, 2, 1, 0});
  builder.leave_out(pipeline, 1);
  builder.call(2, pipeline, {.func = "Send", .called_ms = 1, .peer = 0});
  builder.call(2, pipeline, {.func = "Recv", .called_ms = 2, .peer = 3});
  builder.call(2, pipeline, {.func = "Recv", .called_ms = 3, .peer = 2});
  builder.call(2, pipeline, {.func = "Recv", .called_ms = 3, .peer = 9});
  run.late(2, late_at(31, 3));
  EXPECT_EQ(run.sum()->ranks.at(0).partners, (std::vector<uint32_t>{3, 0}))
      << "rank 1 has left nothing, and there is no rank 9";
}

// The host of rank 1 launches two steps ahead of that of rank 0.
TEST(CountSteps, AreThoseOfTheSameOperations) {
  constexpr uint32_t kSteps = 40;
  constexpr double kAheadMs = 2.2;
  for (const bool shared : {true, false}) {
    testing::JobBuilder builder(2);
    const uint32_t both = builder.comm("both", {0, 1});
    const uint32_t alone[2] = {builder.comm("a", {0}), builder.comm("b", {1})};
    for (uint32_t rank = 0; rank < 2; ++rank) {
      for (uint32_t step = 0; step < kSteps; ++step) {
        const double called = 10 + step - (rank == 1 ? kAheadMs : 0);
        builder.call(rank, shared ? both : alone[rank], {.called_ms = called, .bytes = 8});
        builder.call(rank, alone[rank], {.called_ms = called + 0.1, .bytes = 16});
      }
    }
    const model::Job job = builder.build();
    const Steps usual = find_steps(job, 0);
    EXPECT_EQ(usual.process, 0u);
    ASSERT_EQ(usual.size(), kSteps);
    EXPECT_EQ(count_steps(job, 1, usual).shift, shared ? 0 : -2) << "by time, where no operation tells";
    EXPECT_EQ(count_steps(job, 0, usual).shift, 0);
  }
}

}  // namespace
}  // namespace lockstep::analysis::straggler
