// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::straggler {

extern const Analysis kAnalysis;

namespace {

using testing::JobBuilder;

constexpr uint32_t kRanks = 4;
constexpr uint32_t kSteps = 12;

// Four ranks that go through steps: a collective in pairs (0 1) (2 3), one among (0 2) (1 3), one of all.
// Each waits on its host for the last, as a program does that reads the loss.
class Job {
 public:
  // Extra time, ms, of a rank in a step: on its host before its first call, or on its GPU before the first
  // kernel.
  using Extra = std::function<double(uint32_t rank, uint32_t step)>;

  Job(Extra host, Extra gpu, bool timed = true, uint32_t per_host = 0)
      : builder_(kRanks, per_host), timed_(timed) {
    const std::vector<uint32_t> comms = {builder_.comm("tp0", {0, 1}), builder_.comm("tp1", {2, 3}),
                                         builder_.comm("dp0", {0, 2}), builder_.comm("dp1", {1, 3}),
                                         builder_.world()};
    std::vector<double> free(kRanks, 0.0);
    for (uint32_t step = 0; step < kSteps; ++step) {
      std::vector<double> extra_host(kRanks), extra_gpu(kRanks);
      for (uint32_t rank = 0; rank < kRanks; ++rank) {
        // A little noise, so that no two ranks are equal.
        extra_host[rank] = host(rank, step) + 0.003 * ((rank * 7 + step * 5) % 4);
        extra_gpu[rank] = gpu(rank, step);
      }
      meet(comms[0], {0, 1}, free, extra_host, extra_gpu);
      meet(comms[1], {2, 3}, free, extra_host, extra_gpu);
      const std::vector<double> none(kRanks, 0.0);
      meet(comms[2], {0, 2}, free, none, none);
      meet(comms[3], {1, 3}, free, none, none);
      meet(comms[4], {0, 1, 2, 3}, free, none, none);
    }
  }

  std::vector<Finding> findings(bool one_clock = true) {
    std::vector<Finding> out;
    kAnalysis.run(builder_.build(one_clock), out);
    return out;
  }

 private:
  void meet(uint32_t comm, const std::vector<uint32_t>& ranks, std::vector<double>& free,
            const std::vector<double>& host, const std::vector<double>& gpu) {
    std::vector<double> called, start;
    double last = 0;
    for (uint32_t rank : ranks) {
      called.push_back(free[rank] + 1 + host[rank]);
      start.push_back(called.back() + 0.05 + gpu[rank]);
      last = std::max(last, start.back());
    }
    for (size_t i = 0; i < ranks.size(); ++i) {
      free[ranks[i]] = last + 0.5;
      testing::Call call{.called_ms = called[i]};
      if (timed_) {
        call.gpu_start_ms = start[i];
        call.gpu_end_ms = last + 0.5;
      }
      builder_.call(ranks[i], comm, call);
    }
  }

  JobBuilder builder_;
  bool timed_;
};

double nothing(uint32_t, uint32_t) { return 0; }
double rank3_from_step_5(uint32_t rank, uint32_t step) { return rank == 3 && step >= 5 ? 20 : 0; }

TEST(Straggler, AHealthyJobHasNoFinding) {
  EXPECT_TRUE(Job(nothing, nothing).findings().empty());
  EXPECT_TRUE(Job(nothing, nothing, false).findings().empty());
}

TEST(Straggler, NamesTheRankThatCallsLate) {
  for (bool timed : {true, false}) {
    std::vector<Finding> findings = Job(rank3_from_step_5, nothing, timed).findings();
    ASSERT_EQ(findings.size(), 1u);
    const Finding& finding = findings[0];
    EXPECT_EQ(id_text(finding.id), "host-late");
    EXPECT_EQ(finding.ranks, std::vector<int32_t>{3})
        << "rank 2 waits for it in tp1, and rank 0 for rank 2 in dp0";
    EXPECT_EQ(finding.comm, "tp1");
    EXPECT_EQ(finding.op_index, 5u);
    ASSERT_TRUE(finding.effect);
    EXPECT_NEAR(finding.effect->value, 20e6, 0.1e6);
    EXPECT_LE(finding.effect->low, finding.effect->value);
    EXPECT_NE(finding.statement.find("since step 5,"), std::string::npos) << finding.statement;
    EXPECT_EQ(finding.evidence[1].find("arrivals from GPU times") != std::string::npos, timed);
  }
}

TEST(Straggler, NamesTheRankWhoseKernelsStartLate) {
  std::vector<Finding> findings = Job(nothing, rank3_from_step_5).findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "gpu-late");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{3});
}

TEST(Straggler, SaysWhoWasLateOnce) {
  auto extra = [](uint32_t rank, uint32_t step) { return rank == 1 && step == 6 ? 80.0 : 0.0; };
  std::vector<Finding> findings = Job(extra, nothing).findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "imbalance.once");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{1});
  EXPECT_EQ(findings[0].op_index, 6u);
}

TEST(Straggler, SaysOfNowAndThenWhatEachTimeCosts) {
  auto extra = [](uint32_t rank, uint32_t step) { return rank == 1 && step % 2 == 1 ? 9.0 : 0.0; };
  const std::vector<Finding> findings = Job(extra, nothing).findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "host-late.periodic");
  ASSERT_TRUE(findings[0].effect);
  EXPECT_EQ(findings[0].effect->unit, "ns/late step") << "in every second step nothing is lost";
  EXPECT_NEAR(findings[0].effect->value, 9e6, 0.1e6);
  EXPECT_NE(findings[0].statement.find(
                "in one step in 2 since step 3, costing the other ranks about 9.00 ms each time"),
            std::string::npos)
      << findings[0].statement;
}

TEST(Straggler, BlamesNobodyWhereLatenessGoesRound) {
  auto extra = [](uint32_t rank, uint32_t step) { return step % kRanks == rank ? 6.0 : 0.0; };
  std::vector<Finding> findings = Job(extra, nothing).findings();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "imbalance.rotating");
  EXPECT_TRUE(findings[0].ranks.empty());
}

// Three delays of one rank are no habit, but nobody takes turns with it.
TEST(Straggler, SaysWhoCostMostWithoutBlame) {
  const auto of_others = [](double ms) {
    auto extra = [ms](uint32_t rank, uint32_t step) {
      if (rank == 1) return step == 4 || step == 7 || step == 10 ? 4.0 : 0.0;
      return step % 4 == 2 && step / 4 % 4 == rank ? ms : 0.0;
    };
    const std::vector<Finding> findings = Job(extra, nothing).findings();
    EXPECT_EQ(findings.size(), 1u);
    return findings.empty() ? Finding(FindingId{}) : findings.front();
  };
  const Finding led = of_others(0.3), even = of_others(4);
  EXPECT_EQ(id_text(led.id), "imbalance.rotating");
  EXPECT_EQ(led.statement.find("rank 1 ("), 0u) << led.statement;
  EXPECT_NE(led.statement.find(") cost the others most, "), std::string::npos) << led.statement;
  EXPECT_EQ(led.advice.find("Check what this rank's host does"), 0u) << led.advice;
  EXPECT_TRUE(led.ranks.empty());
  EXPECT_FALSE(led.needed_evidence.empty());
  EXPECT_EQ(even.statement.find("no rank stands out"), 0u) << even.statement;
}

TEST(Straggler, ComparesHostsThatAreNotAlignedEachByItself) {
  std::vector<Finding> findings = Job(rank3_from_step_5, nothing, true, 2).findings(false);
  ASSERT_EQ(findings.size(), 1u) << "ranks 2 and 3 share a host";
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{3});
  EXPECT_TRUE(Job(rank3_from_step_5, nothing, true, 1).findings(false).empty())
      << "nothing compares ranks that have a clock each";
}

// Two hosts with a clock each, of two ranks; every step ends in a wait for all. Steps are those of each
// host's own clock.
TEST(Straggler, FindsWhoTakesTurnsOnHostsWhoseClocksDoNotCompare) {
  auto extra = [](uint32_t rank, uint32_t step) { return step % kRanks == rank ? 6.0 : 0.0; };
  std::vector<Finding> findings = Job(extra, nothing, false, 2).findings(false);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "imbalance.rotating");
}

// Two ranks with steps of 0.3 ms, at each of which the host of the one or the other comes 60 us later.
std::vector<Finding> short_steps(uint32_t count, bool (*late)(uint32_t rank, uint32_t step)) {
  JobBuilder builder(2);
  const uint32_t world = builder.world();
  for (uint32_t step = 0; step < count; ++step) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const double called = 0.3 * step + (late(rank, step) ? 0.06 : 0);
      builder.call(rank, world,
                   {.called_ms = called, .gpu_start_ms = called + 0.01, .gpu_end_ms = 0.3 * step + 0.1});
    }
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  return findings;
}

TEST(Straggler, NamesNobodyWhereHostsDifferFromCallToCall) {
  std::vector<Finding> findings =
      short_steps(10'000, [](uint32_t rank, uint32_t step) { return (step / 7) % 2 == rank; });
  ASSERT_EQ(findings.size(), 1u) << "each rank costs the other a tenth of the run";
  EXPECT_EQ(id_text(findings[0].id), "imbalance.rotating");
  EXPECT_TRUE(findings[0].ranks.empty());
}

TEST(Straggler, NamesWhoIsLateByLessThanATickInEachStep) {
  std::vector<Finding> findings = short_steps(1'000, [](uint32_t rank, uint32_t) { return rank == 1; });
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "host-late");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{1});
}

// Ranks 2 and 3 wait together for somebody who is not seen: neither is late against the other.
TEST(Straggler, BlamesNobodyForLatenessOfAHostThatItsCompanyShares) {
  JobBuilder builder(4);
  const std::vector<uint32_t> pairs = {builder.comm("tp0", {0, 1}), builder.comm("tp1", {2, 3})};
  const std::vector<uint32_t> across = {builder.comm("dp0", {0, 2}), builder.comm("dp1", {1, 3})};
  for (uint32_t step = 0; step < 20; ++step) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const double begin = step * 100 + 0.003 * ((rank * 7 + step * 5) % 4);
      builder.call(rank, pairs[rank / 2], {.called_ms = begin});
      builder.call(rank, across[rank % 2], {.called_ms = begin + (rank >= 2 ? 20 : 1)});
    }
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  for (const Finding& finding : findings) ADD_FAILURE() << finding.statement;
}

// Two pipelines of two stages, each stage on a host whose clock does not compare with the other's, without
// GPU times. Rank 0 begins its steps late by `late_ms`; rank 2, whose host has to wait for what rank 0 sends,
// calls its reduction late by as much.
std::vector<Finding> of_pipelines(double late_ms) {
  JobBuilder builder(4, 2);
  const std::vector<uint32_t> stages = {builder.comm("dp0", {0, 1}), builder.comm("dp1", {2, 3})};
  const std::vector<uint32_t> pipelines = {builder.comm("pp0", {0, 2}), builder.comm("pp1", {1, 3})};
  const uint32_t world = builder.world();
  double now = 1;
  for (uint32_t step = 0; step < 20; ++step) {
    const double late = step >= 5 ? late_ms : 0;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const double begin = now + 0.003 * ((rank * 7 + step * 5) % 4), behind = rank % 2 == 0 ? late : 0;
      builder.call(rank, stages[rank / 2],
                   {.func = "Broadcast", .called_ms = begin + (rank == 0 ? late : 0), .bytes = 64});
      builder.call(rank, pipelines[rank % 2],
                   {.func = rank < 2 ? "Send" : "Recv",
                    .called_ms = begin + 0.1 + (rank == 0 ? late : 0),
                    .peer = rank < 2 ? 1 : 0});
      builder.call(rank, stages[rank / 2], {.called_ms = begin + 0.2 + behind});
      builder.call(rank, world, {.called_ms = begin + 0.3 + behind, .bytes = 64});
    }
    now += 20 + late;
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(false), findings);
  return findings;
}

TEST(Straggler, ByHostsAloneDoesNotBlameAStageThatWaitsForAnother) {
  const std::vector<Finding> findings = of_pipelines(8);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "host-late");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{0});
}

TEST(Straggler, ByHostsAloneIsLateByLessThanATickWhereAllHadWaited) {
  const std::vector<Finding> findings = of_pipelines(0.5);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{0});
  EXPECT_NEAR(findings[0].effect->value, 0.5e6, 0.02e6);
}

// Two pipelines of two stages without GPU times; the second stage ends its steps 2 ms after the first. All
// begin a step together, but for rank 0 from step 5 on: 1.5 ms later than the step before. Rank 1 runs ahead
// of it, and is held up by most of that at the end of the step. What changes from step to step does not tell
// that rank 0 begins anew: it seems to bring along what it was late by, and rank 1 begins the next step when
// all do, however long it waited.
TEST(Straggler, ByHostsAloneNamesWhoGrowsLaterWhereAllBeginAStepTogether) {
  JobBuilder builder(4);
  const std::vector<uint32_t> stages = {builder.comm("dp0", {0, 1}), builder.comm("dp1", {2, 3})};
  const std::vector<uint32_t> pipelines = {builder.comm("pp0", {0, 2}), builder.comm("pp1", {1, 3})};
  const uint32_t world = builder.world();
  double now = 1;
  for (uint32_t step = 0; step < 30; ++step) {
    const double late = step >= 5 ? 1.5 * (step - 4) : 0, jitter = 0.1 * (step * 7 % 5);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const double begin = now + 0.003 * ((rank * 7 + step * 5) % 4) + (rank == 0 ? late : 0);
      const double end = begin + (rank == 0 ? jitter : rank == 1 ? 0.8 * late : 2);
      builder.call(rank, stages[rank / 2], {.func = "Broadcast", .called_ms = begin, .bytes = 64});
      builder.call(rank, pipelines[rank % 2],
                   {.func = rank < 2 ? "Send" : "Recv", .called_ms = begin + 0.1, .peer = rank < 2 ? 1 : 0});
      builder.call(rank, stages[rank / 2], {.called_ms = end + 0.2});
      builder.call(rank, world, {.called_ms = end + 0.3, .bytes = 64});
    }
    now += 20 + late;
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "host-late.growing");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{0});
}

// Hosts that never wait for their GPUs: rank 1 is always a little later than the others, and stays it.
TEST(Straggler, ByHostsAloneAHostThatRunsAheadLessCostsNothingBelowATick) {
  const auto of_hosts = [](double late_ms) {
    JobBuilder builder(4);
    const uint32_t world = builder.world();
    uint32_t noise = 1;
    std::vector<double> drift(4);
    for (uint32_t op = 0; op < 400; ++op) {
      for (uint32_t rank = 0; rank < 4; ++rank) {
        noise = noise * 1'103'515'245 + 12'345;
        drift[rank] = 0.9 * drift[rank] + 0.005 * (noise >> 16 & 7);
        const double late = rank == 1 && op % 20 == 0 ? late_ms : 0;
        builder.call(rank, world,
                     {.called_ms = 1.0 + op + drift[rank] + late, .bytes = 64u << (op % 20 == 19 ? 4 : 0)});
        drift[rank] += late;
      }
    }
    std::vector<Finding> findings;
    kAnalysis.run(builder.build(), findings);
    return findings.size();
  };
  EXPECT_EQ(of_hosts(0.8), 0u);
  EXPECT_EQ(of_hosts(1.2), 1u);
}

// Three hosts of two ranks; both of host 1 come to their pair late, and wait for nobody there.
TEST(Straggler, NamesAHostWhoseRanksAreLateTogether) {
  JobBuilder builder(6, 2);
  const std::vector<uint32_t> pairs = {builder.comm("tp0", {0, 1}), builder.comm("tp1", {2, 3}),
                                       builder.comm("tp2", {4, 5})};
  const std::vector<uint32_t> across = {builder.comm("dp0", {0, 2, 4}), builder.comm("dp1", {1, 3, 5})};
  double begin = 0;
  for (uint32_t step = 0; step < 20; ++step) {
    const double late = step >= 5 ? 20 : 0;
    for (uint32_t rank = 0; rank < 6; ++rank) {
      const double first = begin + 10 + (rank / 2 == 1 ? late : 0) + 0.003 * ((rank + step) % 3);
      builder.call(rank, pairs[rank / 2],
                   {.called_ms = first, .gpu_start_ms = first + 0.1, .gpu_end_ms = first + 1});
      builder.call(rank, across[rank % 2],
                   {.called_ms = first + 5, .gpu_start_ms = first + 5.1, .gpu_end_ms = begin + late + 17});
    }
    begin += 100 + late;
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "host-late");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{2, 3}));
  EXPECT_NEAR(findings[0].effect->value, 20e6, 0.5e6);
}

// Four hosts of two ranks; in each step a reduction within each host, two exchanges of all with all across
// hosts and a reduction across them. From step 5 on, the ranks of host 1 come later to each exchange: by
// `work_ms` that their GPUs work longer, or by `within_ms` that their own reduction lasts longer. All leave
// the exchanges together, and come to both reductions at one time.
std::vector<Finding> of_exchanges(double work_ms, double within_ms) {
  constexpr uint32_t kAll = 8;
  JobBuilder builder(kAll, 2);
  std::vector<uint32_t> within, across, experts;
  for (uint32_t host = 0; host < 4; ++host)
    within.push_back(builder.comm("tp" + std::to_string(host), {2 * host, 2 * host + 1}));
  for (uint32_t first : {0u, 1u}) {
    across.push_back(builder.comm("dp" + std::to_string(first), {first, first + 2, first + 4, first + 6}));
    experts.push_back(builder.comm("ep" + std::to_string(first), {first, first + 2, first + 4, first + 6}));
  }
  double begin = 1;
  for (uint32_t step = 0; step < 20; ++step) {
    double end = 0;
    const double work = step >= 5 ? work_ms : 0, longer = step >= 5 ? within_ms : 0;
    for (uint32_t rank = 0; rank < kAll; ++rank) {
      const bool late = rank / 2 == 1;
      const double noise = 0.003 * ((rank * 7 + step * 5) % 4);
      double host = begin;
      const auto call = [&](uint32_t comm, testing::Call call, double start, double end) {
        host += 0.01;
        call.called_ms = host;
        call.gpu_start_ms = start;
        call.gpu_end_ms = end;
        builder.call(rank, comm, call);
      };
      call(within[rank / 2], {}, begin + 0.5 + noise, begin + 0.6 + (late ? longer : 0));
      double free = begin + 0.6 + work + longer;
      for (int exchange = 0; exchange < 2; ++exchange, free += 1.2 + work) {
        const double start = free + 1 + noise - (late ? 0 : work + (exchange == 0 ? longer : 0));
        for (int peer = 0; peer < 4; ++peer) {
          for (const char* func : {"Send", "Recv"})
            call(experts[rank % 2], {.func = func, .peer = peer}, start, free + 1.2);
        }
      }
      free -= work;
      call(across[rank % 2], {}, free + 0.5 + noise, free + 0.9);
      end = free + 0.9;
    }
    begin = end - 0.5;  // hosts run ahead of their GPUs
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  return findings;
}

TEST(Straggler, NamesAHostForWhichOthersWaitInExchanges) {
  const std::vector<Finding> findings = of_exchanges(0.4, 0);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "gpu-late");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{2, 3}));
  EXPECT_NEAR(findings[0].effect->value, 0.8e6, 0.02e6);
}

TEST(Straggler, AHostThatWasHeldUpBeforeAnExchangeIsNotBlamed) {
  EXPECT_TRUE(of_exchanges(0, 0.8).empty());
  EXPECT_TRUE(of_exchanges(0, 0).empty());
}

// The same hosts. Each step ends in an operation of all ranks that their hosts wait for; host 1 launches the
// next 1 ms late, just as late as before. Beside two operations over the hosts its ranks stay as late.
TEST(Straggler, BlamesAHostAnewOnceItHasWaitedForAll) {
  JobBuilder builder(6, 2);
  const std::vector<uint32_t> pairs = {builder.comm("tp0", {0, 1}), builder.comm("tp1", {2, 3}),
                                       builder.comm("tp2", {4, 5})};
  const std::vector<uint32_t> across = {builder.comm("dp0", {0, 2, 4}), builder.comm("dp1", {1, 3, 5})};
  const uint32_t world = builder.world();
  double begin = 0;
  for (uint32_t step = 0; step < 20; ++step) {
    const double late = step >= 5 ? 1 : 0;
    for (uint32_t rank = 0; rank < 6; ++rank) {
      const double called = begin + (rank / 2 == 1 ? late : 0);
      const auto call = [&](uint32_t comm, uint64_t bytes, double start, double end) {
        builder.call(rank, comm,
                     {.called_ms = called, .bytes = bytes, .gpu_start_ms = start, .gpu_end_ms = end});
      };
      call(pairs[rank / 2], 8, called + 0.05, called + 0.1);
      call(across[rank % 2], 1024, called + 1, begin + late + 1.1);
      call(across[rank % 2], 2048, called + 3, begin + late + 3.1);
      call(world, 8, begin + late + 3.2, begin + late + 3.3);
    }
    begin += 20 + late;
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "host-late");
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{2, 3}));
  EXPECT_NEAR(findings[0].effect->value, 1e6, 0.1e6);
}

// Three hosts of two ranks. A layer is an operation of the host's pair, which holds up what comes after it,
// and one over the hosts, which does not: when the first of these waits 2 ms for host 1, the other hosts are
// as much ahead with all that follow.
TEST(Straggler, BlamesAHostOnceForWhatOthersAreAheadByWhileTheyWait) {
  constexpr uint32_t kLayers = 8;
  JobBuilder builder(6, 2);
  const std::vector<uint32_t> pairs = {builder.comm("tp0", {0, 1}), builder.comm("tp1", {2, 3}),
                                       builder.comm("tp2", {4, 5})};
  const std::vector<uint32_t> across = {builder.comm("dp0", {0, 2, 4}), builder.comm("dp1", {1, 3, 5})};
  double begin = 0;  // of a step, which goes on for 50 ms after the one before
  for (uint32_t step = 0; step < 20; ++step) {
    double end = 0;
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      double last = 0;
      for (const bool reduces : {false, true}) {
        for (uint32_t rank = 0; rank < 6; ++rank) {
          const double late = rank / 2 == 1 && step >= 5 ? 2 : 0.003 * ((rank + step + layer) % 3);
          const double called = begin + 0.02 * layer + (reduces ? 0.01 : 0);
          const double ready = begin + 5 + 0.4 * layer + late + (reduces ? 0.3 : 0);
          const double start = reduces ? std::max(ready, end + 0.002) : ready;
          testing::Call call{.called_ms = called, .gpu_start_ms = start, .gpu_end_ms = start + 0.05};
          if (!reduces) {
            builder.call(rank, pairs[rank / 2], call);
            continue;
          }
          const double latest = std::max(begin + 5.3 + 0.4 * layer + (step >= 5 ? 2 : 0.006), end + 0.002);
          call.gpu_end_ms = last = latest + 0.1;
          builder.call(rank, across[rank % 2], call);
        }
      }
      end = last;
    }
    begin += 50 + (step >= 5 ? 2 : 0);
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{2, 3}));
  EXPECT_NEAR(findings[0].effect->value, 2e6, 0.4e6) << "not again for each layer";
}

// The same hosts, of which host 1, or one rank of it, works about 15 us longer at each of ten parts of a
// layer: too little to tell at any, and after ten layers 1.5 ms. What it is late by at one layer it brings
// along to the next.
std::vector<Finding> falls_behind(bool (*is_slow)(uint32_t rank)) {
  constexpr uint32_t kLayers = 10, kParts = 10;
  JobBuilder builder(6, 2);
  const std::vector<uint32_t> pairs = {builder.comm("tp0", {0, 1}), builder.comm("tp1", {2, 3}),
                                       builder.comm("tp2", {4, 5})};
  const std::vector<uint32_t> across = {builder.comm("dp0", {0, 2, 4}), builder.comm("dp1", {1, 3, 5})};
  double begin = 0;
  for (uint32_t step = 0; step < 20; ++step) {
    const double behind = step >= 5 ? 0.015 + 0.003 * (step * 7 % 5 - 2.0) : 0;
    for (uint32_t part = 1; part <= kLayers * kParts; ++part) {
      const double usual = begin + 5 + 0.1 * part, late = behind * part;
      for (uint32_t rank = 0; rank < 6; ++rank) {
        const bool on_host = rank / 2 == 1;
        const double start =
            usual + (on_host ? late - (is_slow(rank) ? 0 : behind) : 0.001 * ((rank + step + part) % 3));
        const auto call = [&](uint32_t comm, double from, double until) {
          builder.call(rank, comm,
                       {.called_ms = begin + 0.02 * part + from / 1e6,
                        .bytes = 1024 + part,
                        .gpu_start_ms = from,
                        .gpu_end_ms = until});
        };
        const double end = usual + std::max(late * on_host, 0.002) + 0.01;
        call(pairs[rank / 2], start, end);
        if (part % kParts == 0) call(across[rank % 2], end + 0.01, usual + late + 0.05);
      }
    }
    begin += 50 + behind * kLayers * kParts;
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  return findings;
}

TEST(Straggler, AddsUpWhatAHostFallsBehindBy) {
  const std::vector<Finding> findings = falls_behind([](uint32_t rank) { return rank / 2 == 1; });
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ranks, (std::vector<int32_t>{2, 3}));
  EXPECT_GT(findings[0].effect->value, 0.75e6);
  EXPECT_LT(findings[0].effect->value, 1.6e6) << "no more than it fell behind by in a step";
}

// Rank 2 waits for rank 3 at each part. The other hosts wait for both in what goes on beside their work.
TEST(Straggler, DoesNotAddUpWhatARankWaitedForItsHost) {
  for (const Finding& finding : falls_behind([](uint32_t rank) { return rank == 3; })) {
    for (int32_t rank : finding.ranks) EXPECT_EQ(rank, 3) << finding.statement;
  }
}

// Every operation holds up the work towards the next. Where rank 1 works half a millisecond longer towards
// each of a step's eight, it is late at each anew, though it was as late at the one before.
TEST(Straggler, BlamesARankAnewWhereOthersHadWaitedForIt) {
  JobBuilder builder(4);
  const uint32_t world = builder.world();
  constexpr uint32_t kLate[] = {4, 5, 9, 11, 14, 17, 18};
  double free = 0;
  for (uint32_t step = 0; step < 20; ++step) {
    const bool is_late = std::find(std::begin(kLate), std::end(kLate), step) != std::end(kLate);
    for (uint32_t op = 0; op < 8; ++op) {
      const double usual = free + 1 + 0.001 * ((step * 7 + op * 3) % 5);
      const double late = free + 1 + (is_late ? 0.5 : 0) + 0.001 * ((step * 3 + op * 7) % 11);
      const double end = std::max(usual, late) + 0.1;
      for (uint32_t rank = 0; rank < 4; ++rank)
        builder.call(rank, world,
                     {.called_ms = step * 8 + op * 0.1,
                      .bytes = 1u << op,
                      .gpu_start_ms = rank == 1 ? late : usual,
                      .gpu_end_ms = end});
      free = end;
    }
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{1});
  EXPECT_NEAR(findings[0].effect->value, 8 * 0.5e6, 0.5e6) << "a late step";
}

// Buckets of a backward pass that go on while others wait: who is late at the first is late at all.
TEST(Straggler, BlamesLatenessThatLastsOverOverlappingOperationsOnce) {
  JobBuilder builder(4);
  const uint32_t world = builder.world();
  for (uint32_t step = 0; step < 20; ++step) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      double late = step >= 4 && rank == 2 ? 3 : 0.1 * ((step * 3 + rank * rank) % 5);
      double latest = step >= 4 ? 3 : 0.4;
      for (uint32_t bucket = 0; bucket < 10; ++bucket) {
        const double ready = step * 100 + 20 + bucket * 4;
        builder.call(rank, world,
                     {.called_ms = step * 100 + 0.1 * bucket,
                      .bytes = bucket == 0 ? 1u << 10 : 1u << 20,
                      .gpu_start_ms = ready + late,
                      .gpu_end_ms = ready + latest + 0.2});
      }
    }
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "gpu-late");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{2});
  EXPECT_LT(findings[0].effect->value, 6e6) << "3 ms a step, not 30";
}

// Gradients that are reduced one after the other beside the work: who is behind keeps all others waiting at
// each, so that they begin as soon as the one before is through and show no more how long their work takes.
// They did before it fell behind.
TEST(Straggler, ComparesWhoIsAlwaysTheLastWithTheOthersWhenTheyWere) {
  constexpr uint32_t kAll = 8, kBuckets = 30;
  JobBuilder builder(kAll);
  const uint32_t gradients = builder.world("gradients"), loss = builder.world("loss");
  double free = 0;
  for (uint32_t step = 0; step < 10; ++step) {
    std::vector<double> front(kAll, free);
    double moved = 0;
    const auto meet = [&](uint32_t comm, uint32_t bucket) {
      const double last = std::max(*std::max_element(front.begin(), front.end()), moved + 0.002);
      for (uint32_t rank = 0; rank < kAll; ++rank)
        builder.call(rank, comm,
                     {.called_ms = free + 0.01 * bucket,
                      .gpu_start_ms = std::max(front[rank], moved + 0.002),
                      .gpu_end_ms = last + 0.06});
      moved = last + 0.06;
    };
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      for (uint32_t rank = 0; rank < kAll; ++rank)
        front[rank] +=
            1 + 0.01 * ((step * 5 + bucket * 3 + rank * 7) % 11) + (rank == 5 && step >= 2 ? 0.15 : 0);
      meet(gradients, bucket);
    }
    for (double& of : front) of = std::max(of, moved) + 0.1;
    meet(loss, kBuckets);
    free = moved;
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(id_text(findings[0].id), "gpu-late");
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{5});
  EXPECT_NEAR(findings[0].effect->value, kBuckets * 0.15e6, 0.8e6);
}

// Ranks 0 and 1, and 2 and 3, exchange data twice a layer, and wait for each other there. Then gradients are
// reduced over all beside the work: the others come as early as before, wait there for the late pair, and
// work on meanwhile.
std::vector<int32_t> named_of_exchanges(double (*longer_ms)(uint32_t rank)) {
  constexpr uint32_t kAll = 8, kLayers = 6;
  JobBuilder builder(kAll);
  std::vector<uint32_t> pairs;
  for (uint32_t rank = 0; rank < kAll; rank += 2)
    pairs.push_back(builder.comm("ep" + std::to_string(rank / 2), {rank, rank + 1}));
  const uint32_t gradients = builder.world("gradients"), loss = builder.world("loss");
  double free = 0;
  for (uint32_t step = 0; step < 20; ++step) {
    std::vector<double> front(kAll, free);
    double moved = free, called = free;
    const auto work = [&](uint32_t part) {
      for (uint32_t rank = 0; rank < kAll; ++rank)
        front[rank] += 0.3 + longer_ms(rank) + 0.001 * ((step * 5 + part * 3 + rank * 7) % 11);
      called += 0.01;
    };
    const auto exchange = [&](uint32_t part) {
      work(part);
      for (uint32_t rank = 0; rank < kAll; ++rank) {
        const double end = std::max(front[rank], front[rank ^ 1]) + 0.02;
        for (const char* func : {"Send", "Recv"}) {
          for (int peer = 0; peer < 2; ++peer)
            builder.call(rank, pairs[rank / 2],
                         {.func = func,
                          .called_ms = called,
                          .peer = peer,
                          .gpu_start_ms = front[rank],
                          .gpu_end_ms = end});
        }
      }
      for (uint32_t rank = 0; rank < kAll; rank += 2)
        front[rank] = front[rank + 1] = std::max(front[rank], front[rank + 1]) + 0.02;
    };
    const auto reduce = [&](uint32_t comm, uint64_t bytes) {
      const double last = std::max(*std::max_element(front.begin(), front.end()), moved + 0.002);
      for (uint32_t rank = 0; rank < kAll; ++rank)
        builder.call(rank, comm,
                     {.called_ms = called,
                      .bytes = bytes,
                      .gpu_start_ms = std::max(front[rank], moved + 0.002),
                      .gpu_end_ms = last + 0.03});
      moved = last + 0.03;
    };
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      exchange(3 * layer);
      exchange(3 * layer + 1);
      work(3 * layer + 2);
      reduce(gradients, 1u << layer);
    }
    for (double& of : front) of = std::max(of, moved) + 0.1;
    reduce(loss, 8);
    free = moved;
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  std::vector<int32_t> ranks;
  for (const Finding& finding : findings)
    ranks.insert(ranks.end(), finding.ranks.begin(), finding.ranks.end());
  return ranks;
}

TEST(Straggler, DoesNotBlameWhoExchangesDataWithALateRank) {
  using Ranks = std::vector<int32_t>;
  EXPECT_EQ(named_of_exchanges([](uint32_t rank) { return rank == 3 ? 0.02 : 0; }), Ranks{3});
  EXPECT_EQ(named_of_exchanges([](uint32_t rank) { return rank / 2 == 1 ? 0.02 : 0; }), (Ranks{2, 3}));
  EXPECT_EQ(named_of_exchanges([](uint32_t) { return 0.02; }), Ranks{});
}

// Rank 4 is late to each step, and rank 3 with it, which then reduces its gradients at the pace of all. Those
// wait for it at each, begin as soon as the one before is through, and never show how long their work takes;
// one of them left no file.
std::vector<Finding> of_a_pace_nobody_shows(bool broken_off) {
  constexpr uint32_t kBuckets = 30, kAbsent = 5;
  JobBuilder builder(6);
  const uint32_t pair = builder.comm("tp", {3, 4}),
                 gradients = builder.comm("gradients", {0, 1, 2, 3, kAbsent});
  builder.without(kAbsent);
  double free = 0;
  for (uint32_t step = 0; step < 12; ++step) {
    const double ready = free + 1, met = free + 10;
    for (uint32_t rank : {3u, 4u})
      builder.call(rank, pair,
                   {.called_ms = free, .gpu_start_ms = rank == 4 ? met : ready, .gpu_end_ms = met + 0.1});
    double moved = free;
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      const double behind = met + 0.1 + 0.5 * (bucket + 1);
      const double end = behind + (bucket == 7 ? 0.005 : 0.06);
      for (uint32_t rank = 0; rank < 4; ++rank) {
        const double first = ready + 0.001 * ((rank + step) % 3);
        builder.call(rank, gradients,
                     {.called_ms = free + 0.01 * bucket,
                      .bytes = 1u << (bucket == 0),
                      .gpu_start_ms = rank == 3 ? behind : std::max(first, moved + 0.002),
                      .gpu_end_ms = end});
      }
      moved = end;
    }
    free = moved;
  }
  for (uint32_t bucket = 0; broken_off && bucket < kBuckets; ++bucket) {
    for (uint32_t rank = 0; rank < 4; ++rank)
      builder.call(rank, gradients, {.called_ms = free + 0.08 * bucket, .bytes = 1u << (bucket == 0)});
  }
  std::vector<Finding> findings;
  kAnalysis.run(builder.build(), findings);
  return findings;
}

TEST(Straggler, DoesNotBlameAPaceThatNobodyElseShows) {
  const std::vector<Finding> findings = of_a_pace_nobody_shows(false);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{4}) << findings[0].statement;
}

// A run that broke off: hosts had called what no GPU came to.
TEST(Straggler, DoesNotCompareAPaceWithHowFastHostsCall) {
  const std::vector<Finding> findings = of_a_pace_nobody_shows(true);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ranks, std::vector<int32_t>{4}) << findings[0].statement;
}

}  // namespace
}  // namespace lockstep::analysis::straggler
