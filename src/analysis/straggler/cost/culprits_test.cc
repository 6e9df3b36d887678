// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/cost/culprits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/straggler/cost/delay_cost_builder.h"
#include "analysis/straggler/cost/scattered.h"

namespace lockstep::analysis::straggler {
namespace {

constexpr size_t kSteps = 100, kCounted = kSteps - 2;
// Per step, so that in the steps that count it adds up to this share of the run.
constexpr double share_ms(double share) { return share * kStepMs * kSteps / kCounted; }

std::vector<size_t> named(const DelayCost& costs) {
  std::vector<size_t> out;
  for (const Culprit& culprit : culprits(costs)) out.push_back(culprit.row);
  std::sort(out.begin(), out.end());
  return out;
}
using Ranks = std::vector<size_t>;

TEST(Culprits, CostAHundredthOfTheRun) {
  const auto late_by = [](double share) {
    return costs_of(8, kSteps, [=](size_t rank, size_t) { return rank == 3 ? share_ms(share) : 0; });
  };
  EXPECT_EQ(named(late_by(0.0101)), Ranks{3});
  EXPECT_EQ(named(late_by(0.0099)), Ranks{});
}

// In all, a rank costs 1.74 % of the run or more: what it costs in a step that is late as usual decides.
TEST(Culprits, CostAHundredthOfAStep) {
  const auto late_by = [](double share) {
    return costs_of(8, kSteps, [=](size_t rank, size_t step) {
      return rank != 3 ? 0 : (step % 5 < 2 ? 0.03 : share) * kStepMs;
    });
  };
  EXPECT_EQ(named(late_by(0.0101)), Ranks{3});
  EXPECT_EQ(named(late_by(0.0099)), Ranks{});
}

TEST(Culprits, OfAShortRunCostAMillisecond) {
  const auto late_by = [](double ms) {
    return costs_of(8, 6, [=](size_t rank, size_t step) { return rank == 3 && step >= 2 ? ms / 4 : 0; });
  };
  EXPECT_EQ(named(late_by(1.01)), Ranks{3});
  EXPECT_EQ(named(late_by(0.99)), Ranks{});
}

TEST(Culprits, AreJudgedByWhatCountsAlone) {
  const DelayCost costs =
      costs_of(8, kSteps, [](size_t rank, size_t step) { return rank == 3 && step < 2 ? 500.0 : 0; });
  EXPECT_EQ(named(costs), Ranks{}) << "steps 0 and 1 warm up";
}

// In steps of their own, so that neither hides the other. The other costs less than is worth a name.
TEST(Culprits, CostTwiceWhatAnyoneElseCosts) {
  const auto times = [](double factor) {
    return costs_of(8, kSteps, [=](size_t rank, size_t step) {
      if (rank == 3 && step % 2 == 0) return 2 * share_ms(0.009) * factor;
      return rank == 5 && step % 2 == 1 ? 2 * share_ms(0.009) : 0;
    });
  };
  EXPECT_EQ(named(times(2.05)), Ranks{3});
  EXPECT_EQ(named(times(1.95)), Ranks{});
}

// Rank 3 is late for longer, and rank 5, less each time, in all other steps: how often either comes is what
// the sums hang on.
TEST(Culprits, CostMoreWhicheverStepsAreTaken) {
  const auto late = [](size_t times) {
    return costs_of(8, kSteps, [=](size_t rank, size_t step) {
      const bool mine = step < 96 && step % (96 / times) == 10;
      if (rank == 3) return mine ? 18.5 / static_cast<double>(times) : 0;
      return rank == 5 && !mine ? 0.09 : 0;
    });
  };
  EXPECT_EQ(named(late(8)), Ranks{3});
  EXPECT_EQ(named(late(4)), Ranks{}) << "another time, one of the four might have come";
}

TEST(Culprits, InEachStepAreNotHiddenByOneLargeDelayOfAnother) {
  const auto late = [](double ms) {
    return costs_of(8, 30, [=](size_t rank, size_t step) {
      if (rank == 3) return 0.5;
      return rank == 5 && step == 10 ? ms : 0;
    });
  };
  EXPECT_EQ(named(late(6)), Ranks{3});
  EXPECT_EQ(named(late(7.5)), Ranks{}) << "half as much";
}

TEST(Culprits, AreNamedTogetherIfTheyAreLateTogether) {
  const auto late = [](size_t ranks, size_t count) {
    return costs_of(ranks, kSteps, [=](size_t rank, size_t step) {
      return rank < count && step >= 40 ? 4 + 0.5 * static_cast<double>(rank) : 0;
    });
  };
  EXPECT_EQ(named(late(8, 3)), (Ranks{0, 1, 2}));
  EXPECT_EQ(named(late(16, 8)), (Ranks{0, 1, 2, 3, 4, 5, 6, 7})) << "a host of two";
  EXPECT_EQ(named(late(4, 2)), (Ranks{0, 1}));
  EXPECT_LE(named(late(3, 2)).size(), 1u) << "more than half";
}

TEST(Culprits, MayCostHalfAsMuchWithSomebodyWhoIsNamed) {
  const auto with = [](double share, size_t apart) {
    return named(costs_of(8, kSteps, [=](size_t rank, size_t step) {
      if (rank == 3) return step % 20 < 16 ? share_ms(0.015) * 20 / 16 : 0;
      return rank == 4 && step % 20 >= apart && step % 20 < apart + 16 ? share_ms(share) * 20 / 16 : 0;
    }));
  };
  EXPECT_EQ(with(0.0051, 0), (Ranks{3, 4}));
  EXPECT_EQ(with(0.0049, 0), Ranks{3});
  EXPECT_EQ(with(0.0060, 4), (Ranks{3, 4})) << "12 of its 16 late steps";
}

// Rank 4 costs less than twice what rank 7 does by one delay, and was late once before: alone it would not
// stand out. Were it let go, it would hide rank 3.
TEST(Culprits, NeedNotStandOutBesideSomebodyWhoDoes) {
  const DelayCost costs = costs_of(8, kSteps, [](size_t rank, size_t step) {
    if (rank == 3) return step >= 60 ? 2.0 : 0;
    if (rank == 4) return step == 20 ? 9.0 : step >= 60 ? 1.6 : 0;
    return rank == 7 && step == 80 ? 34.0 : 0;
  });
  EXPECT_EQ(named(costs), (Ranks{3, 4})) << "rank 7 is late in one of their steps";
}

TEST(Culprits, AreNotThoseWhoMayOnlyHaveWaitedForOneThatCostFourTimesAsMuch) {
  const auto with = [](double ms) {
    return named(costs_of(8, kSteps, [=](size_t rank, size_t step) {
      if (rank == 3) return step >= 60 ? 2.0 : 0;
      return rank == 4 && step >= 60 ? ms : 0;
    }));
  };
  EXPECT_EQ(with(0.51), (Ranks{3, 4}));
  EXPECT_EQ(with(0.49), Ranks{3});
}

// Rank 0 is late in all steps, rank 1 in four of five, and rank 2 with both of them, but by too little for a
// name: three of the ranks are late together, which is more than half of four and half of six.
TEST(Culprits, WhoIsLateWithThemCountsForTheHalf) {
  const auto of_ranks = [](size_t ranks) {
    return named(costs_of(ranks, kSteps, [](size_t rank, size_t step) {
      if (rank == 0) return 4.0;
      if (rank == 1) return step % 5 < 4 ? 4.5 : 0;
      return rank == 2 ? 0.8 : 0;
    }));
  };
  EXPECT_EQ(of_ranks(6), (Ranks{0, 1}));
  EXPECT_LE(of_ranks(4).size(), 1u);
}

// Others are late now and then in other steps; the eight ranks of a host are so in none of these.
TEST(Culprits, WhoAreLateTogetherAreNotEachOthersChance) {
  const DelayCost costs = costs_of(32, 20, [](size_t rank, size_t step) {
    if (rank < 8) return step >= 13 ? 2.5 : 0.0;
    return step < 13 && step == rank / 2 ? 1.0 : 0;
  });
  EXPECT_EQ(named(costs), (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
}

// The last rank of a host is late by less, and in fewer of the steps in which the others are.
TEST(Culprits, AreNotHiddenByWhoIsLateInFewerOfTheirSteps) {
  const auto with_last_in = [](size_t of_ten) {
    return named(costs_of(32, 60, [=](size_t rank, size_t step) {
      if (step < 30 || rank > 7) return 0.0;
      return rank < 7 ? 0.36 : step % 10 < of_ten ? 0.3 : 0;
    }));
  };
  EXPECT_EQ(with_last_in(10), (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(with_last_in(6), (Ranks{0, 1, 2, 3, 4, 5, 6}));
}

// By chance, one of so many ranks is the late one each time: 2^-5 and 2^-6, 4^-2 and 4^-3 ...
TEST(Culprits, WereLateTooOftenForChance) {
  const auto times = [](size_t ranks, size_t count) {
    return costs_of(ranks, kSteps, [=](size_t rank, size_t step) {
      // At distances of which no two are alike.
      for (size_t i = 0; i < count; ++i) {
        if (rank == 1 && step == 3 + i * (i + 5)) return 30.0;
      }
      return 0.0;
    });
  };
  EXPECT_EQ(named(times(2, 6)), Ranks{});
  EXPECT_EQ(named(times(2, 7)), Ranks{1});
  EXPECT_EQ(named(times(4, 3)), Ranks{}) << "four times are a habit, whatever chance says";
  EXPECT_EQ(named(times(4, 4)), Ranks{1});
  EXPECT_EQ(named(times(64, 3)), Ranks{});
  EXPECT_EQ(named(times(64, 4)), Ranks{1});
}

// Two ranks are late by turns by 1.6 ms, and from the middle on one of them by more in each step.
TEST(Culprits, OfEachStepStandOutFromWhatIsLittle) {
  const DelayCost costs = costs_of(2, 30, [](size_t rank, size_t step) {
    if (step < 16) return step * 7 / 3 % 2 == rank ? 1.6 : 0.0;
    return rank == 1 ? 6.0 : 0.0;
  });
  EXPECT_EQ(named(costs), Ranks{1});
}

TEST(Culprits, EqualDistancesAreEvidence) {
  const auto times = [](size_t count) {
    return costs_of(2, kSteps, [=](size_t rank, size_t step) {
      return rank == 1 && step % 15 == 10 && step < 15 * count ? 30.0 : 0.0;
    });
  };
  EXPECT_EQ(named(times(3)), Ranks{});
  EXPECT_EQ(named(times(4)), Ranks{1});
  EXPECT_EQ(culprits(times(4))[0].pattern.period, 15u);
}

// 60 late steps that befall 8 ranks as it happens.
TEST(Culprits, AreNoneWhereRanksTakeTurns) {
  for (size_t seed = 0; seed < 50; ++seed) {
    const DelayCost costs = costs_of(8, kSteps, [=](size_t rank, size_t step) {
      const uint64_t random = (step + 1 + seed * 1000) * 0x9e3779b97f4a7c15u >> 20;
      return random % 5 < 3 && random / 5 % 8 == rank ? 4.0 : 0;
    });
    EXPECT_EQ(named(costs), Ranks{}) << seed;
    EXPECT_TRUE(turns(costs)) << seed;
  }
}

// Rank 5 is late, by less and later in the step, in nearly all or all of rank 3's late steps.
TEST(Culprits, ByHostsAloneAreNotThoseWhoWaitedForThem) {
  const auto of_twenty = [](int with, bool timed) {
    DelayCost costs = costs_of(
        8, kSteps,
        [=](size_t rank, size_t step) {
          if (rank == 3) return static_cast<int>(step % 20) < with ? 8.0 : 0.1;
          return rank == 5 ? 4.0 : 0;
        },
        timed);
    for (size_t step = 0; step < kSteps; ++step) costs.ranks[5].late_ns[step] += 5'000'000;
    return named(costs);
  };
  EXPECT_EQ(of_twenty(19, false), Ranks{3});
  EXPECT_EQ(of_twenty(17, false), (Ranks{3, 5}));
  EXPECT_EQ(of_twenty(19, true), (Ranks{3, 5})) << "GPU times tell who waited";
  const DelayCost before = costs_of(
      8, kSteps, [](size_t rank, size_t) { return rank == 3   ? 8.0
                                                  : rank == 5 ? 4.0
                                                              : 0; }, false);
  EXPECT_EQ(named(before), (Ranks{3, 5})) << "rank 5 was there before rank 3";
  DelayCost alike = costs_of(
      8, kSteps, [](size_t rank, size_t) { return rank == 3 || rank == 5 ? 8.0 : 0; }, false);
  EXPECT_EQ(named(alike), (Ranks{3, 5}));
  for (int64_t& late_ns : alike.ranks[5].late_ns) late_ns += 1'000'000;
  EXPECT_EQ(named(alike), Ranks{3}) << "rank 5 came after it and cost no more";
}

// Which of two hosts whose clocks do not compare was late first is not known: who exchanges messages with a
// costlier rank may have waited for it, and nobody else.
TEST(Culprits, OnClocksThatDoNotComparePartnersMayHaveWaited) {
  const auto with_partner = [](uint32_t partner) {
    DelayCost costs = costs_of(
        8, kSteps, [](size_t rank, size_t) { return rank == 3   ? 8.0
                                                    : rank == 5 ? 4.0
                                                                : 0; }, false);
    costs.steps_by_clock.push_back(costs.steps);
    costs.ranks[5].clock = 1;
    costs.ranks[5].partners = {1, partner};
    return named(costs);
  };
  EXPECT_EQ(with_partner(3), Ranks{3});
  EXPECT_EQ(with_partner(4), (Ranks{3, 5}));
}

// Two that cost alike, now the one a little more and now the other.
TEST(Culprits, OnClocksThatDoNotCompareEitherOfTwoPartnersMayHaveWaited) {
  const auto either = [](size_t clock, uint32_t partner, bool timed) {
    DelayCost costs = costs_of(
        8, kSteps,
        [](size_t rank, size_t step) {
          return rank == 3 || rank == 5 ? (step % 2 == rank % 4 / 2 ? 8.0 : 7.9) : 0;
        },
        timed);
    costs.steps_by_clock.push_back(costs.steps);
    costs.ranks[5].clock = clock;
    costs.ranks[5].partners = {1, partner};
    std::vector<std::optional<size_t>> out;
    for (const Culprit& culprit : culprits(costs)) out.push_back(culprit.either);
    return out;
  };
  using Either = std::vector<std::optional<size_t>>;
  const Either nobody(2);
  EXPECT_EQ(either(1, 3, false), (Either{5, 3}));
  EXPECT_EQ(either(1, 4, false), nobody) << "no partners";
  EXPECT_EQ(either(0, 3, false), nobody) << "one clock";
  EXPECT_EQ(either(1, 3, true), nobody) << "GPU times tell who waited";
}

TEST(Culprits, KnowWhatTheyCost) {
  const std::vector<Culprit> found = culprits(costs_of(8, kSteps, [](size_t rank, size_t step) {
    return rank == 3 && step >= 50 ? 5.0 : rank == 4 && step % 10 == 0 ? 0.5 : 0;
  }));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pattern.kind, Pattern::Kind::kSince);
  EXPECT_EQ(found[0].pattern.first, 50u);
  EXPECT_DOUBLE_EQ(found[0].per_step_ns, 5e6);
  EXPECT_DOUBLE_EQ(found[0].total_ns, 250e6);
  EXPECT_NEAR(found[0].cost.middle, 247.5e6, 1) << "beyond rank 4";
  EXPECT_LE(found[0].cost.low, found[0].cost.middle);
  EXPECT_NEAR(found[0].next.middle, 2.5e6, 1);
}

// Whatever the ranks do: where somebody's own doing costs a hundredth, something is said.
TEST(Culprits, NobodyIsHealthyWhoCostsAHundredth) {
  for (size_t seed = 1; seed <= 300; ++seed) {
    const size_t ranks = 2 + seed % 7;
    const DelayCost costs = costs_of(ranks, 40 + seed % 50, [=](size_t rank, size_t step) {
      uint64_t x = (seed * 7919 + rank * 104729 + step) * 0xbf58476d1ce4e5b9u;
      x ^= x >> 29;
      const double uniform = static_cast<double>(x % 100000) / 100000;
      const double tail = std::pow(uniform, static_cast<double>(1 + seed % 30));
      return tail * static_cast<double>(seed % 11) * (rank == seed % 3 ? 3 : 0.2);
    });
    const std::vector<Interval> own = own_costs(costs);
    const bool costly = std::any_of(own.begin(), own.end(), [&](const Interval& cost) {
      return cost.middle >= std::max(0.01 * costs.span_ns, kLeastTotalNs);
    });
    const bool blamed = !culprits(costs).empty() || few_delays(costs) || turns(costs);
    EXPECT_TRUE(blamed || !costly) << seed;
  }
}

}  // namespace
}  // namespace lockstep::analysis::straggler
