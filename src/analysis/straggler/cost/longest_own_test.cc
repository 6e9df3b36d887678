// SPDX-License-Identifier: Apache-2.0
#include "analysis/straggler/cost/longest_own.h"

#include <gtest/gtest.h>

#include <functional>

#include "analysis/straggler/cost/delay_cost_builder.h"
#include "analysis/straggler/lateness/lateness.h"
#include "analysis/testing/job_builder.h"
#include "model/record_gaps.h"

namespace lockstep::analysis::straggler {
namespace {

using testing::JobBuilder;
using Ms = std::function<double(uint32_t rank, uint32_t step)>;

constexpr uint32_t kOfFour = 4, kOfForty = 40;
constexpr uint32_t kLateSince = 10;

double no_ms(uint32_t, uint32_t) { return 0; }

// Steps of one reduction of all. Each rank works 2 ms for it, and what `gpu` and `host` add; the reduction is
// through 8 ms after the slowest began it.
struct Training {
  explicit Training(const Ms& gpu, const Ms& host = no_ms, uint32_t per_host = 0, bool timed = true,
                    uint32_t ranks = kOfFour)
      : builder(ranks, per_host), costs(costs_of(ranks, kOfForty, no_ms)) {
    const uint32_t world = builder.world();
    std::vector<int64_t> begins;
    double now = 1;
    for (uint32_t step = 0; step < kOfForty; ++step) {
      double last = 0;
      std::vector<double> called, start;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        called.push_back(now + 0.1 + host(rank, step));
        start.push_back(now + 2 + gpu(rank, step) + host(rank, step));
        last = std::max(last, start.back());
      }
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        testing::Call call{.called_ms = called[rank]};
        if (timed) call.gpu_start_ms = start[rank], call.gpu_end_ms = last + 8;
        builder.call(rank, world, call);
      }
      begins.push_back(testing::at_ms(now));
      now = last + 8;
    }
    costs.steps.begin_ns = begins;
    costs.steps_by_clock = {costs.steps};
    costs.span_ns = (now - 1) * 1e6;
  }

  std::vector<LongestOwn> find(uint32_t with_gap = model::kNoRow,
                               std::string_view gap = model::kLossIncompleteSlightly) {
    model::Job job = builder.build();
    if (with_gap != model::kNoRow)
      job.losses.append({.process = with_gap,
                         .stage = job.strings.intern("read"),
                         .kind = job.strings.intern(gap),
                         .count = 3,
                         .detail = job.strings.intern("of 11 chunks cannot be read: /run/p.lks")});
    std::vector<LongestOwn> ranks = among(Among::kRanks, job);
    return ranks.empty() ? among(Among::kHosts, job) : ranks;
  }
  std::vector<LongestOwn> find_hosts() { return among(Among::kHosts, builder.build()); }

  std::vector<LongestOwn> among(Among units, const model::Job& job) const {
    std::vector<ExclusiveTimes> times;
    measure(job, {}, &times);
    return longest_own(job, costs, times, units).longest;
  }

  JobBuilder builder;
  DelayCost costs;
};

// These ranks, by so much in each step since one.
Ms since_onset(const std::vector<uint32_t>& ranks, double ms) {
  return [=](uint32_t rank, uint32_t step) {
    return step >= kLateSince && std::find(ranks.begin(), ranks.end(), rank) != ranks.end() ? ms : 0;
  };
}

TEST(LongestOwn, IsTheRankThatWorksLongerThanAllOthers) {
  const auto found = Training(since_onset({2}, 1)).find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].processes, std::vector<uint32_t>{2});
  EXPECT_EQ(found[0].pattern.kind, Pattern::Kind::kSince);
  EXPECT_EQ(found[0].pattern.first, kLateSince);
  EXPECT_EQ(found[0].op, kLateSince) << "one operation a step";
  EXPECT_NEAR(found[0].lead.middle, (kOfForty - kLateSince) * 1e6, 1e3);
  EXPECT_NEAR(found[0].per_step_ns, 1e6, 1e3);
  EXPECT_EQ(found[0].host_share, 0);
}

// What such a rank lacks would count as its own time.
TEST(LongestOwn, IsNobodyWhoseRecordHasGaps) {
  EXPECT_TRUE(Training(since_onset({2}, 1)).find(2).empty());
  EXPECT_EQ(Training(since_onset({2}, 1)).find(1).size(), 1u) << "others are still compared";
}

TEST(LongestOwn, IsNobodyWhereMuchOfAnotherIsMissing) {
  for (const auto gap : {model::kLossIncompleteMiddle, model::kLossIncompleteEnd})
    EXPECT_TRUE(Training(since_onset({2}, 1)).find(1, gap).empty()) << gap;
}

TEST(LongestOwn, IsTheHostsWhereItCallsLater) {
  const auto found = Training(no_ms, since_onset({2}, 1)).find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].processes, std::vector<uint32_t>{2});
  EXPECT_NEAR(found[0].host_share, 1, 0.01);
}

TEST(LongestOwn, LeadsByTwoHundredthsOfTheRun) {
  const auto leads = [](double ms) { return !Training(since_onset({2}, ms)).find().empty(); };
  EXPECT_TRUE(leads(0.28));
  EXPECT_FALSE(leads(0.26)) << "thirty times this are less than 2 % of forty steps of 10 ms";
}

TEST(LongestOwn, IsAllOfOneHostTogether) {
  const auto of = [](const std::vector<uint32_t>& ranks) {
    return Training(since_onset(ranks, 1), no_ms, 2).find();
  };
  const auto host = of({2, 3});
  ASSERT_EQ(host.size(), 1u);
  EXPECT_EQ(host[0].processes, (std::vector<uint32_t>{2, 3}));
  EXPECT_TRUE(of({1, 2}).empty()) << "ranks of two hosts";
}

// Hosts that launch late until step 10; then those of the first host wait in the reduction and launch
// meanwhile. Of the other, the first `longer` ranks work longer, for which the others wait.
std::vector<LongestOwn> of_a_late_host(uint32_t ranks, uint32_t longer) {
  const uint32_t first = ranks / 2;
  return Training(
             [=](uint32_t rank, uint32_t step) {
               if (step < kLateSince) return 10.0;
               return rank < first ? 3.0 : rank < first + longer ? 10.4 : 9.9;
             },
             no_ms, first, true, ranks)
      .find();
}

TEST(LongestOwn, CostsWhatHalfOfTheHostWorksLongerThanUsually) {
  const auto host = of_a_late_host(8, 2);
  ASSERT_EQ(host.size(), 1u);
  EXPECT_EQ(host[0].processes, (std::vector<uint32_t>{4, 5, 6, 7}));
  EXPECT_NEAR(host[0].lead.middle, (kOfForty - kLateSince) * 0.4e6, 1e3);
  EXPECT_NEAR(host[0].per_step_ns, 0.4e6, 1e3);
}

TEST(LongestOwn, IsNoHostOfWhichOneAloneWorksLonger) {
  EXPECT_TRUE(of_a_late_host(8, 1).empty());
  EXPECT_TRUE(of_a_late_host(4, 1).empty()) << "half of two ranks is one";
  EXPECT_EQ(of_a_late_host(4, 2).size(), 1u);
}

TEST(LongestOwn, IsNoHostOfWhichOneWorksMuchLongerThanTheOthers) {
  const auto hosts_where_one_works = [](double ms) {
    return Training(
               [=](uint32_t rank, uint32_t step) {
                 if (step < kLateSince) return 10.0;
                 return rank < 4 ? 3.0 : rank == 4 ? ms : 10.4;
               },
               no_ms, 4, true, 8)
        .find_hosts();
  };
  EXPECT_EQ(hosts_where_one_works(10.7).size(), 1u);
  EXPECT_TRUE(hosts_where_one_works(10.9).empty()) << "more than twice what the others work longer";
}

TEST(LongestOwn, MayBeASingleStep) {
  const auto found =
      Training([](uint32_t rank, uint32_t step) { return rank == 1 && step == 20 ? 30.0 : 0.0; }).find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].processes, std::vector<uint32_t>{1});
  EXPECT_EQ(found[0].pattern.kind, Pattern::Kind::kNone);
  EXPECT_EQ(found[0].pattern.late, std::vector<size_t>{20});
  EXPECT_NEAR(found[0].lead.middle, 30e6, 1e3);
}

// Of ranks that all write a checkpoint, one is the last.
TEST(LongestOwn, IsNobodyInAPauseThatAllMake) {
  const auto is_found = [](double all_ms) {
    return !Training([=](uint32_t rank, uint32_t step) {
              return step == 20 ? all_ms + (rank == 1 ? 30 : 0) : 0.0;
            })
                .find()
                .empty();
  };
  EXPECT_TRUE(is_found(6));
  EXPECT_FALSE(is_found(7)) << "more than a quarter of 30 ms without half of the pause";
}

TEST(LongestOwn, IsNobodyWhereRanksTakeTurns) {
  EXPECT_TRUE(Training([](uint32_t rank, uint32_t step) { return step % kOfFour == rank ? 1.0 : 0.0; })
                  .find()
                  .empty());
}

TEST(LongestOwn, NeedsGpuTimes) {
  EXPECT_TRUE(Training(no_ms, since_onset({2}, 1), 0, false).find().empty());
}

// Two ranks, each alone in its stage, send each other a message in each step, through once both are there.
// GPU times up to step `timed`.
OwnLeads of_messages(const Ms& work_ms, uint32_t steps = 80, uint32_t timed = UINT32_MAX) {
  JobBuilder builder(2);
  const uint32_t world = builder.world();
  DelayCost costs = costs_of(2, steps, no_ms);
  costs.steps.begin_ns.clear();
  double now = 1;
  for (uint32_t step = 0; step < steps; ++step) {
    costs.steps.begin_ns.push_back(testing::at_ms(now));
    double start[2] = {};
    for (uint32_t rank = 0; rank < 2; ++rank)
      start[rank] = now + work_ms(rank, step) + 0.01 * ((step * 5 + rank * 3) % 7);
    const double end = std::max(start[0], start[1]) + 0.1;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      for (const char* func : {"Send", "Recv"}) {
        testing::Call call{.func = func, .called_ms = now + 0.01, .peer = static_cast<int>(1 - rank)};
        if (step < timed) call.gpu_start_ms = start[rank], call.gpu_end_ms = end;
        builder.call(rank, world, call);
      }
    }
    now = end;
  }
  costs.steps_by_clock = {costs.steps};
  costs.span_ns = (now - 1) * 1e6;
  const model::Job job = builder.build();
  std::vector<ExclusiveTimes> times;
  measure(job, {}, &times);
  return longest_own(job, costs, times, Among::kRanks);
}

TEST(LongestOwn, IsTheRankAloneInItsStageThatBecameSlowEarly) {
  const auto found = of_messages([](uint32_t rank, uint32_t step) {
                       return rank == 1 && step >= 16 ? 3 : rank == 0 && step >= 16 ? 1.8 : 2;
                     }).longest;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].processes, std::vector<uint32_t>{1});
  EXPECT_EQ(found[0].pattern.first, 16u);
  EXPECT_NEAR(found[0].per_step_ns, 1e6, 0.1e6);
}

bool is_nobody(const OwnLeads& leads) { return leads.longest.empty() && !leads.seldom; }

TEST(LongestOwn, IsNobodyWhereAllStagesHaveMoreWork) {
  EXPECT_TRUE(is_nobody(of_messages([](uint32_t rank, uint32_t) { return rank == 1 ? 3 : 2; })));
  EXPECT_TRUE(is_nobody(
      of_messages([](uint32_t rank, uint32_t step) { return (rank == 1 ? 3 : 2) + (step >= 16 ? 1 : 0); })));
  EXPECT_TRUE(is_nobody(of_messages(
      [](uint32_t rank, uint32_t step) { return (rank == 1 ? 3 : 2) * (step >= 16 ? 1.5 : 1); })));
}

// What was not seen of the GPU, as at the end of a process that was killed, is not its work.
TEST(LongestOwn, HasGpuTimes) {
  const auto late = [](uint32_t rank, uint32_t step) { return rank == 1 && step >= 70 ? 3 : 2; };
  EXPECT_FALSE(is_nobody(of_messages(late)));
  EXPECT_TRUE(is_nobody(of_messages(late, 80, 70)));
}

// Of two ranks, either one would be late in all of five steps in 1 of 16 runs.
TEST(LongestOwn, IsLateTooSeldomForAHabit) {
  const auto of = [](double ms, double of_the_other_ms) {
    return of_messages([=](uint32_t rank, uint32_t step) {
      const bool late = step == 20 || step == 33 || step == 50 || step == 61 || step == 70;
      return 2 + (rank == 1 && late ? ms : 0) + (rank == 0 && step == 40 ? of_the_other_ms : 0);
    });
  };
  const OwnLeads leads = of(1.5, 0);
  EXPECT_TRUE(leads.longest.empty());
  ASSERT_TRUE(leads.seldom);
  EXPECT_NEAR(leads.seldom->total_ns, 7.5e6, 0.3e6);
  EXPECT_EQ(leads.seldom->steps, 5u);
  EXPECT_TRUE(leads.seldom->one);
  ASSERT_EQ(leads.seldom->costliest.size(), 1u);
  EXPECT_EQ(leads.seldom->costliest[0].first, 1u);
  EXPECT_TRUE(is_nobody(of(0.9, 0))) << "less than 5 ms in all";
  EXPECT_TRUE(is_nobody(of(1.5, 1.95))) << "a fifth of all is another rank's";
}

TEST(LongestOwn, ComparesRanksOfOneClockWithThoseOfAnother) {
  Training run(since_onset({2}, 1), no_ms, 2);
  const model::Job job = run.builder.build(false);
  std::vector<ExclusiveTimes> times;
  measure(job, {}, &times);
  run.costs.domains = {times[0].domain, times[2].domain};
  run.costs.steps_by_clock.push_back(run.costs.steps);
  const auto found = longest_own(job, run.costs, times, Among::kRanks).longest;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].processes, std::vector<uint32_t>{2});
}

}  // namespace
}  // namespace lockstep::analysis::straggler
