// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/cost/scattered.h"

#include <gtest/gtest.h>

#include "analysis/straggler/cost/delay_cost_builder.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr size_t kSteps = 100;

// Rank 1 loses `ms` in step 50; the others `other_ms` in step 70.
DelayCost two_delays(double ms, double other_ms) {
  return costs_of(4, kSteps, [=](size_t rank, size_t step) {
    if (rank == 1 && step == 50) return ms;
    return rank == 2 && step == 70 ? other_ms : 0;
  });
}

TEST(FewDelays, OfOneRankAreFourFifthsOfAllThatWasLost) {
  const auto few_of = [](double ms, double other_ms) {
    return few_delays(costs_of(4, kSteps, [=](size_t rank, size_t step) {
      if (rank == 1) return step == 20 || step == 50 || step == 81 ? ms / 3 : 0;
      return rank == 2 && step == 70 ? other_ms : 0;
    }));
  };
  const auto few = few_of(81, 19);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->row, 1u);
  EXPECT_EQ(few->steps, (std::vector<size_t>{20, 50, 81}));
  EXPECT_NEAR(few->total_ns, 81e6, 1e3);
  EXPECT_FALSE(few_of(79, 21));
}

// Hosts of hundreds of ranks hiccup by this much in every other step.
TEST(FewDelays, ByHostsAloneAreNotHiddenByWhatMayHaveCostNothing) {
  const auto among = [](double hiccup_ms, bool timed) {
    return few_delays(costs_of(
                          4, kSteps,
                          [=](size_t rank, size_t step) {
                            if (rank == 1 && step == 50) return 40.0;
                            return rank == 2 && step % 3 == 0 ? hiccup_ms : 0;
                          },
                          timed))
        .has_value();
  };
  EXPECT_TRUE(among(1.9, false));
  EXPECT_FALSE(among(2.4, false));
  EXPECT_FALSE(among(1.9, true));
}

// Each other step loses a little by another rank.
TEST(FewDelays, StandOutFromWhatAddsUp) {
  const auto among = [](double other_ms) {
    return few_delays(costs_of(4, kSteps,
                               [=](size_t rank, size_t step) {
                                 if (rank == 1 && (step == 50 || step == 70)) return 20.0;
                                 return rank == 2 + step % 2 && step % 3 == 0 ? other_ms : 0;
                               }))
        .has_value();
  };
  EXPECT_TRUE(among(1.4)) << "46 ms";
  EXPECT_FALSE(among(1.6)) << "a twentieth of the run";
  const auto twice = [](double other_ms) {
    return few_delays(costs_of(4, kSteps,
                               [=](size_t rank, size_t step) {
                                 if (rank == 1 && step == 50) return 20.0;
                                 return rank == 2 && (step == 70 || step == 80) ? other_ms : 0;
                               }))
        .has_value();
  };
  EXPECT_TRUE(twice(9.9));
  EXPECT_FALSE(twice(10.1));
}

TEST(FewDelays, AreLongerThanAStep) {
  EXPECT_TRUE(few_delays(two_delays(10.1, 0)));
  EXPECT_FALSE(few_delays(two_delays(9.9, 0)));
}

// Of a run of short steps, a hundredth is less than what a host's scheduler takes.
TEST(FewDelays, AreNoLessThanASingleDelay) {
  const auto is_one = [](double ms, bool timed) {
    DelayCost costs = costs_of(
        2, 20, [=](size_t rank, size_t step) { return rank == 1 && step == 10 ? ms : 0; }, timed);
    costs.usual_step_ns = 0.5e6;
    costs.span_ns = 10e6;
    return few_delays(costs).has_value();
  };
  EXPECT_TRUE(is_one(2.1, false));
  EXPECT_FALSE(is_one(1.9, false));
  EXPECT_TRUE(is_one(1.1, true));
  EXPECT_FALSE(is_one(0.9, true));
}

// As a GPU that computes longer comes a little later to each operation of the step.
TEST(FewDelays, MayBeMadeOfManyInOneStep) {
  DelayCost costs = two_delays(50, 0);
  for (RankCost& rank : costs.ranks) rank.peaks.assign(kSteps, 0);
  EXPECT_TRUE(few_delays(costs));
}

TEST(FewDelays, CostAHundredthOfTheRun) {
  DelayCost costs = two_delays(50, 0);
  costs.span_ns = 4.99e9;
  EXPECT_TRUE(few_delays(costs));
  costs.span_ns = 5.01e9;
  EXPECT_FALSE(few_delays(costs));
}

TEST(FewDelays, CanBeSeveral) {
  const auto few = few_delays(costs_of(4, kSteps, [](size_t rank, size_t step) {
    return rank == 1 && (step == 20 || step == 63) ? 60.0 : rank == 1 && step == 80 ? 29 : 0;
  }));
  ASSERT_TRUE(few);
  EXPECT_EQ(few->steps, (std::vector<size_t>{20, 63})) << "less than half of the worst is no such delay";
}

TEST(FewDelays, WarmUpDoesNotCount) {
  EXPECT_FALSE(few_delays(
      costs_of(4, kSteps, [](size_t rank, size_t step) { return rank == 1 && step == 1 ? 60.0 : 0; })));
}

// All ranks pause for 200 ms in step 50.
TEST(FewDelays, AreNotWhatRanksDifferByInAPauseOfAll) {
  for (double ms : {99.0, 111.0}) {
    DelayCost costs = two_delays(ms, 0);
    costs.uneven_ns[50] = 100e6;
    EXPECT_EQ(few_delays(costs).has_value(), ms > 110) << ms;
    EXPECT_EQ(turns(costs).has_value(), ms > 110) << ms;
  }
}

// Each rank in its turn, in every tenth step.
DelayCost taking_turns(double ms, bool timed) {
  return costs_of(
      5, kSteps, [=](size_t rank, size_t step) { return step % 10 == 5 && step / 10 % 5 == rank ? ms : 0; },
      timed);
}

TEST(Turns, CostATwentiethInLongDelaysOrOneRankAHundredth) {
  EXPECT_FALSE(turns(taking_turns(4.9, true))) << "4.9 % together, 0.98 % each";
  const auto lost = turns(taking_turns(5.1, true));
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->ranks, 5u);
  EXPECT_EQ(lost->steps, 10u);
  EXPECT_NEAR(lost->total_ns, 51e6, 1e3);
  ASSERT_EQ(lost->costliest.size(), 3u);
  EXPECT_NEAR(lost->costliest[0].second.middle, 10.2e6, 1e3);
}

// Too short to be delays: they count by what a rank's own doing costs.
TEST(Turns, OfShortDelaysCostAHundredthByOneRank) {
  const auto each = [](double share, bool timed) {
    return turns(costs_of(
                     2, kSteps,
                     [=](size_t rank, size_t step) {
                       return step % 2 == rank ? 2 * share * kStepMs * kSteps / (kSteps - 2) : 0;
                     },
                     timed))
        .has_value();
  };
  EXPECT_TRUE(each(0.0101, true));
  EXPECT_FALSE(each(0.0099, true));
  EXPECT_TRUE(each(0.0301, false));
  EXPECT_FALSE(each(0.0299, false)) << "hosts run ahead of their GPUs";
}

// Neither costs anything alone: what each lost is worth a word all the same.
TEST(Turns, OfRanksThatAreLateTogetherCostAHundredth) {
  const auto each = [](double share) {
    return turns(costs_of(4, kSteps,
                          [=](size_t rank, size_t) {
                            return rank == 1 || rank == 2 ? share * kStepMs * kSteps / (kSteps - 2) : 0;
                          }))
        .has_value();
  };
  EXPECT_TRUE(each(0.0105));
  EXPECT_FALSE(each(0.0099));
}

// In each step whoever comes last in one operation or the other: all lose alike, as by the hosts' noise.
TEST(Turns, AreNoneWhereAllLoseAlike) {
  const auto all_lose = [](double ms, double first_ms) {
    return turns(costs_of(
                     8, kSteps,
                     [=](size_t rank, size_t step) {
                       return (rank == 0 ? first_ms : 0) +
                              ms * (1 + 0.01 * static_cast<double>((rank + step) % 8));
                     },
                     false))
        .has_value();
  };
  EXPECT_FALSE(all_lose(0.9, 0)) << "9 % each, and nobody beyond the others";
  EXPECT_FALSE(all_lose(0.9, 0.28));
  EXPECT_TRUE(all_lose(0.9, 0.34));
}

// One long delay: whether the rank loses so much again is not known.
TEST(Turns, AreNoneWhereOneDelayMakesTheRanksDiffer) {
  const auto with_delay = [](bool in_one_step) {
    return turns(costs_of(8, kSteps,
                          [=](size_t rank, size_t step) {
                            if (rank == 1) return in_one_step ? (step == 50 ? 15.0 : 0.0) : 0.153;
                            return rank == 2 && (step == 50 || !in_one_step) ? 6.0 : 0;
                          }))
        .has_value();
  };
  EXPECT_FALSE(with_delay(true)) << "9 ms of its own, and 6 ms together";
  EXPECT_TRUE(with_delay(false));
}

// Of a run of 300 ms, in a delay that is shorter than a step.
TEST(Turns, OfAShortRunCostFiveMilliseconds) {
  const auto late_by = [](double ms) {
    return turns(costs_of(4, 30, [=](size_t rank, size_t step) { return rank == 1 && step == 20 ? ms : 0; }))
        .has_value();
  };
  EXPECT_TRUE(late_by(5.1));
  EXPECT_FALSE(late_by(4.9));
}

// Rank 1 alone is late three times; rank 2 is in other steps.
TEST(Turns, AreNoneWhereNearlyAllIsOneRanks) {
  const auto is_one = [](double other_ms) {
    const auto lost = turns(costs_of(4, kSteps, [=](size_t rank, size_t step) {
      if (rank == 1) return step == 20 || step == 47 || step == 81 ? 20.0 : 0;
      return rank == 2 && step % 10 == 5 ? other_ms : 0;
    }));
    return lost && lost->one;
  };
  EXPECT_TRUE(is_one(1.4));
  EXPECT_FALSE(is_one(1.6));
}

TEST(Turns, DoNotCountWhatTheClocksLeaveOpen) {
  DelayCost costs = taking_turns(1.0, true);
  for (RankCost& rank : costs.ranks) rank.peaks.assign(kSteps, 0);
  for (float& ns : costs.ranks[2].by_step) ns = 0.2e6f;
  ASSERT_TRUE(turns(costs)) << "2 %";
  costs.ranks[2].sure_share = 0.4;
  EXPECT_FALSE(turns(costs));
}

}  // namespace
}  // namespace lockstep::analysis::straggler
