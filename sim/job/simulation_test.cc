// SPDX-License-Identifier: Apache-2.0
// What must hold in true time, whatever the seed, the layout and the fault.
#include "job/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "job/job.h"
#include "tests/support/sanitizers.h"

namespace lockstep::sim::job {
namespace {

struct Played {
  Job job;
  Timeline timeline;
};
Played play(JobOptions options) {
  auto job = Job::make(options);
  EXPECT_TRUE(job) << (job ? "" : job.error().message());
  Job made = std::move(*job);
  Timeline timeline = Simulation(made.layout, made.programs, made.fault.disturbance,
                                 {options.steps, made.deep()}, made.random)
                          .run();
  return {std::move(made), std::move(timeline)};
}

JobOptions sized(int ranks, int tp, int pp, int ep, uint64_t seed, const char* fault = "none") {
  JobOptions options;
  options.seed = seed;
  options.layout.ranks = ranks;
  options.layout.tp = tp;
  options.layout.pp = pp;
  options.layout.ep = ep;
  options.layout.ranks_per_host = 4;
  options.steps = 4;
  options.mode = format::Mode::kDeep;
  options.fault = fault;
  return options;
}

struct Visit {
  int rank;
  int64_t entered, ended;
  Task task;
};
// Who went through each collective of a group, by index.
std::map<std::pair<int, uint64_t>, std::vector<Visit>> visits(const Played& p) {
  std::map<std::pair<int, uint64_t>, std::vector<Visit>> all;
  for (int rank = 0; rank < p.job.layout.ranks(); ++rank) {
    const RankTimeline& t = p.timeline.ranks[static_cast<size_t>(rank)];
    std::map<int, uint64_t> index;
    size_t row = 0;
    for (int step = 0; step < static_cast<int>(t.step_begin.size()); ++step) {
      for (const Unit& unit : p.job.program(rank, step)) {
        if (row == t.units()) break;
        const int group = p.job.layout.group_of(rank, unit.dim);
        if (!unit.tasks.front().is_p2p())
          all[{group, index[group]++}].push_back({rank, t.entered[row], t.ended[row], unit.tasks.front()});
        ++row;
      }
    }
  }
  return all;
}

void expect_nobody_leaves_early(const Played& p) {
  for (const auto& [op, members] : visits(p)) {
    const Group& group = p.job.layout.group(op.first);
    int64_t last = 0, root = kNever;
    bool all = members.size() == group.ranks.size();
    for (const Visit& v : members) {
      all = all && v.entered != kNever;
      last = std::max(last, v.entered);
      if (v.rank == group.ranks[static_cast<size_t>(v.task.root)]) root = v.entered;
    }
    const bool eager =
        members.front().task.func == Func::kBroadcast && members.front().task.bytes() <= kEagerBytes;
    for (const Visit& v : members) {
      if (v.ended == kNever) continue;
      ASSERT_GT(v.ended, v.entered);
      if (eager) {
        ASSERT_NE(root, kNever);
        ASSERT_GT(v.ended, root);
      } else {
        ASSERT_TRUE(all) << group.name << " index " << op.second;
        ASSERT_GT(v.ended, last);
      }
    }
  }
}

TEST(Simulation, HealthyJobsFinishAndNobodyLeavesEarly) {
  const int layouts[][4] = {{2, 1, 1, 1}, {8, 2, 2, 1},  {16, 4, 1, 2},
                            {4, 1, 4, 1}, {24, 2, 3, 2}, {5, 1, 1, 1}};
  for (const auto& [ranks, tp, pp, ep] : layouts) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Played p = play(sized(ranks, tp, pp, ep, seed));
      EXPECT_TRUE(p.timeline.finished) << ranks << " ranks, seed " << seed;
      expect_nobody_leaves_early(p);
      for (const RankTimeline& t : p.timeline.ranks) {
        for (size_t row = 0; row < t.units(); ++row) {
          ASSERT_GT(t.entered[row], t.called[row]);
          ASSERT_GE(t.ended[row], t.met[row]);
        }
      }
    }
  }
}

TEST(Simulation, EveryRankHasTheOperationsAskedFor) {
  JobOptions options = sized(32, 4, 2, 1, 1);
  options.program.ops_per_step = 100;
  const Job job = std::move(Job::make(options).value());
  for (const Program& program : job.programs) EXPECT_EQ(tasks_of(program), 100u);
}

TEST(Simulation, HangsHangAndLateJobsFinish) {
  const char* hangs[] = {"never-joined",
                         "never-joined:finished",
                         "joined-other-op",
                         "joined-other-op:root",
                         "joined-other-op:order",
                         "cross-comm-deadlock",
                         "cross-comm-deadlock:enqueued",
                         "stuck-in-gpu",
                         "stuck-in-gpu:compute",
                         "stuck-in-network",
                         "rank-dead",
                         "rank-dead:inside",
                         "rank-unreachable",
                         "init-stuck",
                         "too-many-failed"};
  const char* goes_on[] = {"host-late",      "gpu-late",         "slow-link",
                           "slow-nic",       "fallback",         "imbalance",
                           "imbalance:once", "evidence-missing", "evidence-missing:half"};
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (const char* fault : hangs) {
      const Played p = play(sized(16, 2, 1, 1, seed, fault));
      EXPECT_FALSE(p.timeline.finished) << fault << " seed " << seed;
      EXPECT_TRUE(p.job.fault.truth.hangs) << fault;
      expect_nobody_leaves_early(p);
    }
    for (const char* fault : goes_on) {
      const Played p = play(sized(16, 2, 1, 1, seed, fault));
      EXPECT_TRUE(p.timeline.finished) << fault << " seed " << seed;
      EXPECT_FALSE(p.job.fault.truth.hangs) << fault;
      expect_nobody_leaves_early(p);
    }
  }
}

TEST(Simulation, ALateRankCostsWhatTheTruthSays) {
  for (const char* fault : {"host-late", "gpu-late"}) {
    JobOptions options = sized(16, 2, 1, 1, 5, fault);
    options.steps = 30;
    const Played late = play(options);
    const Truth& truth = late.job.fault.truth;
    options.fault = "none";
    const Played healthy = play(options);
    const double lost_ms = static_cast<double>(late.timeline.last - healthy.timeline.last) * 1e-6;
    const double expected_ms = truth.effect_ms * (options.steps - truth.since_step);
    EXPECT_NEAR(lost_ms / expected_ms, 1, 0.2) << fault;
  }
}

// The size of a pattern is searched for, so that what is left open is how near the search comes.
TEST(Simulation, PatternsOfLatenessCostTheRunWhatTheTruthSays) {
  if (test::kSanitized) GTEST_SKIP() << "36 jobs, for a minute; others are like them";
  for (const char* pattern :
       {"every", "since", "window", "periodic", "tail", "growing", "once", "few", "host"}) {
    for (const char* part : {"", ":gpu"}) {
      const std::string fault = std::string("late:") + pattern + part;
      JobOptions options = sized(24, 2, pattern == std::string("host") ? 1 : 2, 1, 5, fault.c_str());
      options.steps = 30;
      const Played late = play(options);
      const Truth& truth = late.job.fault.truth;
      options.fault = "none";
      const Played healthy = play(options);
      const auto began = static_cast<double>(kFirstStepNs);
      const double ran = static_cast<double>(late.timeline.last) - began;
      const double cost = static_cast<double>(late.timeline.last - healthy.timeline.last) / ran;
      EXPECT_GT(cost, 0.0135) << fault;
      EXPECT_NEAR(cost, truth.cost_share, 1e-9) << fault;
      expect_nobody_leaves_early(late);
    }
  }
}

bool is_late(const Played& p, int rank, int step) {
  const auto& delays = p.job.fault.disturbance.delays;
  return std::any_of(delays.begin(), delays.end(), [&](const Delay& delay) {
    return delay.rank == rank && step >= delay.from_step && step < delay.until_step;
  });
}

TEST(Simulation, PatternsOfLatenessBefallWhomAndWhenTheTruthSays) {
  for (const char* fault :
       {"late:every", "late:since", "late:window", "late:periodic", "late:few", "late:host:gpu"}) {
    JobOptions options = sized(24, 2, 1, 1, 7, fault);
    options.steps = 30;
    const Played p = play(options);
    const Truth& truth = p.job.fault.truth;
    for (int rank = 0; rank < 24; ++rank) {
      const bool blamed = std::count(truth.ranks.begin(), truth.ranks.end(), rank) > 0;
      for (int step = 0; step < options.steps; ++step) {
        const bool then = step >= truth.since_step && step < truth.until_step &&
                          (truth.period == 0 || (step - truth.since_step) % truth.period == 0);
        EXPECT_EQ(is_late(p, rank, step), blamed && then) << fault << " rank " << rank << " step " << step;
      }
    }
  }
}

// Of the run, what one rank is held up for longer than another in all.
TEST(Simulation, WhatHealthyRanksDifferByIsNotWorthAWord) {
  for (const char* scenario :
       {"none:jitter-storm", "none:checkpoint", "none:uneven-data", "none:recompilation"}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      JobOptions options = sized(8, 2, 1, 1, seed, scenario);
      options.steps = 30;
      const Played p = play(options);
      EXPECT_TRUE(p.timeline.finished);
      std::map<int, double> by_rank;  // of the run, its delays
      const double run_us = static_cast<double>(p.timeline.last - kFirstStepNs) * 1e-3;
      for (const Delay& d : p.job.fault.disturbance.delays)
        by_rank[d.rank] += (d.host_us + d.gpu_us) / run_us;
      const auto [low, high] = std::minmax_element(
          by_rank.begin(), by_rank.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      EXPECT_GT(high->second, low->second) << scenario;
      EXPECT_LT(high->second - low->second, 0.0065) << scenario << " seed " << seed;
    }
  }
}

TEST(Simulation, FaultsThatCannotBeSeenAreRefused) {
  JobOptions options = sized(16, 2, 1, 1, 1, "gpu-late");
  options.mode = format::Mode::kDefault;
  EXPECT_FALSE(Job::make(options));
  EXPECT_FALSE(Job::make(sized(4, 2, 1, 1, 1, "slow-link")));
  EXPECT_FALSE(Job::make(sized(16, 2, 1, 1, 1, "late:tail"))) << "too few steps";
  options = sized(4, 2, 1, 1, 1, "late:few");
  options.steps = 30;
  EXPECT_FALSE(Job::make(options)) << "two of four are half";
  options.fault = "late:host";
  EXPECT_FALSE(Job::make(options)) << "one host";
  options.layout.ranks = 8;
  EXPECT_FALSE(Job::make(options)) << "two hosts";
  EXPECT_FALSE(Job::make(sized(4, 2, 1, 1, 1, "no-such-fault")));
  EXPECT_FALSE(Job::make(sized(4, 2, 1, 1, 1, "rank-dead:no-such-variant")));
  EXPECT_FALSE(Job::make(sized(6, 4, 1, 1, 1)));
}

}  // namespace
}  // namespace lockstep::sim::job
