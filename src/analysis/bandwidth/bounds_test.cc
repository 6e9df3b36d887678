// SPDX-License-Identifier: Apache-2.0
// Every number by which this room judges, from both sides: what is just enough, and what just is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/analysis.h"
#include "analysis/bandwidth/rate_sums.h"
#include "analysis/bandwidth/rates.h"
#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::bandwidth {

extern const Analysis kAnalysis;

namespace {

using model::Job;
using testing::JobBuilder;

constexpr uint64_t kMiB = 1 << 20;
constexpr double kFast = 64.0 * kMiB / 1e6;  // GB/s of 64 MiB in 1 ms

// What a communicator of two ranks does: operations of `ms`, of which two fifths take up to `spread` more or
// less. The second rank is 5 ms late.
struct Pair {
  double ms = 1;
  uint32_t ops = 20;
  double spread = 0;
  uint64_t bytes = 64 * kMiB;
  std::string func = "AllReduce";
};

void fill(JobBuilder& builder, const std::string& name, uint32_t first, uint32_t second, const Pair& pair) {
  const uint32_t comm = builder.comm(name, {first, second});
  for (uint32_t i = 0; i < pair.ops; ++i) {
    const double at = i * 50.0, end = at + 6 + pair.ms * (1 + pair.spread * (i % 5 - 2.0) / 2);
    builder.call(
        first, comm,
        {.func = pair.func, .called_ms = at, .bytes = pair.bytes, .gpu_start_ms = at + 1, .gpu_end_ms = end});
    builder.call(
        second, comm,
        {.func = pair.func, .called_ms = at, .bytes = pair.bytes, .gpu_start_ms = at + 6, .gpu_end_ms = end});
  }
}

// Pair i is ranks 2 i and 2 i + 1, communicator "tp<i>".
Job job_of(const std::vector<Pair>& pairs) {
  JobBuilder builder(static_cast<uint32_t>(pairs.size() * 2));
  for (uint32_t i = 0; i < pairs.size(); ++i)
    fill(builder, "tp" + std::to_string(i), 2 * i, 2 * i + 1, pairs[i]);
  return builder.build();
}
std::vector<Finding> judged(const Job& job) {
  std::vector<Finding> findings;
  kAnalysis.run(job, findings);
  return findings;
}
bool speaks(const std::vector<Pair>& pairs) { return !judged(job_of(pairs)).empty(); }

TEST(BandwidthBounds, SlowIsLessThanFourFifths) {
  EXPECT_TRUE(speaks({{}, {}, {}, {.ms = 1 / 0.79}}));
  EXPECT_FALSE(speaks({{}, {}, {}, {.ms = 1 / 0.81}}));
}

// A ring has long forgotten the first operations.
TEST(BandwidthBounds, NumbersMayBeginAnywhere) {
  Job job = job_of({{}, {}, {}, {.ms = 1 / 0.79}});
  for (model::JobProcess& process : job.processes) {
    for (uint32_t& index : process.ops.index) index += 4'000'000'000;
  }
  EXPECT_FALSE(judged(job).empty());
}

TEST(BandwidthBounds, TheSpreadOfEitherSideKeepsSilence) {
  EXPECT_TRUE(speaks({{}, {}, {}, {.ms = 1.5, .spread = 0.6}})) << "its better quarter takes 1.05 ms";
  EXPECT_FALSE(speaks({{}, {}, {}, {.ms = 1.5, .spread = 0.7}})) << "0.98 ms";
  auto others = [](double spread) {
    const Pair other{.spread = spread};
    return speaks({other, other, other, {.ms = 1.5}});
  };
  EXPECT_TRUE(others(0.9)) << "their worse quarter takes 1.45 ms";
  EXPECT_FALSE(others(1.1)) << "1.55 ms";
}

// A pair of broadcasts of 1.5 ms; its GPU times are known to `error_ns`.
std::vector<Finding> of_uncertain_broadcasts(int32_t error_ns) {
  const Pair other{.func = "Broadcast"};
  Job job = job_of({other, other, other, {.ms = 1.5, .func = "Broadcast"}});
  for (uint32_t rank : {6u, 7u}) {
    auto& errors = job.processes[rank].ops.gpu_error_ns;
    std::fill(errors.begin(), errors.end(), error_ns);
  }
  return judged(job);
}

TEST(BandwidthBounds, TheClocksErrorCountsForBothEnds) {
  const std::vector<Finding> found = of_uncertain_broadcasts(340'000);
  ASSERT_EQ(found.size(), 1u)
      << "1.5 ms, less 2 x 0.34 ms of it in the bandwidth: still less than 1 ms' bandwidth";
  EXPECT_TRUE(of_uncertain_broadcasts(400'000).empty()) << "it may have been as fast as the others";
  ASSERT_TRUE(found[0].effect);
  const double error = 2 * 340'000 / 1.5e6, middle = kFast / 1.5;
  EXPECT_NEAR(found[0].effect->value, middle, 0.01);
  EXPECT_NEAR(found[0].effect->low, middle * (1 - error), 0.01);
  EXPECT_NEAR(found[0].effect->high, middle * (1 + error), 0.01);
}

TEST(BandwidthBounds, EightOperationsAreEnough) {
  EXPECT_TRUE(speaks({{}, {}, {}, {.ms = 2, .ops = 8}}));
  EXPECT_FALSE(speaks({{}, {}, {}, {.ms = 2, .ops = 7}}));
  EXPECT_FALSE(speaks({{.ops = 7}, {.ops = 7}, {}, {.ms = 2}}))
      << "of two, nobody can say which is the odd one";
  EXPECT_TRUE(speaks({{.ops = 7}, {}, {}, {.ms = 2}}));
}

// 10 ms are lost, of 20 ms and three times `others` ms in all.
TEST(BandwidthBounds, AHundredthOfTheTimeIsWorthAWord) {
  auto says = [](uint32_t others) {
    const Pair other{.ops = others};
    return speaks({other, other, other, {.ms = 2, .ops = 10}});
  };
  EXPECT_TRUE(says(320)) << "of 980 ms";
  EXPECT_FALSE(says(335)) << "of 1025 ms";
}

TEST(BandwidthBounds, OnlyEqualsAreCompared) {
  EXPECT_FALSE(speaks({{}, {}, {}, {.ms = 2, .bytes = 32 * kMiB}})) << "another size";
  EXPECT_FALSE(speaks({{}, {}, {}, {.ms = 2, .func = "AllGather"}}));
  EXPECT_TRUE(speaks({{}, {}, {}, {.ms = 4, .bytes = 127 * kMiB}})) << "sizes up to twice as large";
}

TEST(BandwidthBounds, WhatIsSaidIsWhatWasMeasured) {
  const std::vector<Finding> found =
      judged(job_of({{}, {}, {}, {.ms = 2, .ops = 20}, {.ms = 4, .ops = 8, .spread = 0.1}}));
  ASSERT_EQ(found.size(), 1u);
  const Finding& finding = found[0];
  EXPECT_EQ(finding.comm, "tp4") << "it lost 23.6 ms, tp3 20";
  EXPECT_EQ(finding.ranks, (std::vector<int32_t>{8, 9})) << "no rank is in both";
  EXPECT_EQ(finding.hosts, std::vector<std::string>{"node0"});
  EXPECT_EQ(
      finding.statement,
      "a link of ranks 8 and 9 (node0) is slow: AllReduce of communicator tp4 moves 16.8 GB/s, while 4 similar communicators reach 67.1 GB/s");
  EXPECT_NEAR(finding.weight, 20e6 + (8 - 0.15) * 4e6 * 0.75, 1e3);
  ASSERT_EQ(finding.evidence.size(), 3u);
  EXPECT_EQ(finding.evidence[0],
            "tp3 (ranks 6 and 7): 33.6 GB/s to 33.6 GB/s in the middle half of 20 operations of 64 MiB and "
            "more, 67.1 GB/s elsewhere; 20.0 ms lost");
  EXPECT_NE(finding.evidence[1].find("16.0 GB/s to 17.7 GB/s in the middle half of 8 operations"),
            std::string::npos)
      << finding.evidence[1];
}

TEST(BandwidthBounds, ARankOfAllSlowCommunicatorsIsTheOne) {
  JobBuilder builder(10);
  const Pair slow{.ms = 2};
  fill(builder, "a", 0, 1, slow);
  fill(builder, "b", 1, 2, {.ms = 2.2});
  fill(builder, "c", 4, 5, {});
  fill(builder, "d", 6, 7, {});
  fill(builder, "e", 8, 9, {});
  const std::vector<Finding> found = judged(builder.build());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].comm, "b");
  EXPECT_EQ(found[0].ranks, std::vector<int32_t>{1});
}

// The worst kind of a communicator is shown, whichever comes first; all that it lost counts.
TEST(BandwidthBounds, TheWorstKindOfACommunicatorIsShown) {
  for (const double large_ms : {2.0, 8.0}) {
    JobBuilder builder(8);
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t comm = builder.comm("tp" + std::to_string(i), {2 * i, 2 * i + 1});
      for (uint32_t step = 0; step < 40; ++step) {
        const bool large = step % 2 == 1;
        const double ms = i < 3 ? 1 : large ? large_ms : 4, at = step * 50;
        for (uint32_t rank : {2 * i, 2 * i + 1})
          builder.call(rank, comm,
                       {.called_ms = at,
                        .bytes = large ? 64 * kMiB : 16 * kMiB,
                        .gpu_start_ms = at,
                        .gpu_end_ms = at + ms});
      }
    }
    const std::vector<Finding> found = judged(builder.build());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NEAR(found[0].effect->value, large_ms > 4 ? kFast / 8 : kFast / 4 / 4, 0.01);
    EXPECT_NEAR(found[0].weight, 20 * (3 + large_ms - 1) * 1e6, 1e3);
  }
}

TEST(RateSums, AreQuartilesOfWhatIsCertain) {
  RateSums sums;
  for (const double time : {100, 200, 400, 500, 1000}) sums.add(1000, time, time / 10);
  sums.add(1000, 50, 50);
  sums.add(1000, 0, 0);
  sums.add(1000, 50, 60);
  Rate rate;
  sums.fill(1.5, rate);
  EXPECT_EQ(rate.ops, 5u);
  EXPECT_EQ(rate.uncertain, 3u);
  EXPECT_EQ(rate.bytes, 5000u);
  EXPECT_EQ(rate.time_ns, 2200);
  EXPECT_FLOAT_EQ(static_cast<float>(rate.algbw.low), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(rate.algbw.middle), 2.5);
  EXPECT_FLOAT_EQ(static_cast<float>(rate.algbw.high), 5);
  EXPECT_FLOAT_EQ(static_cast<float>(rate.busbw.low), 3);
  EXPECT_FLOAT_EQ(static_cast<float>(rate.busbw.middle), 3.75);
  EXPECT_FLOAT_EQ(static_cast<float>(rate.busbw.high), 7.5);
  EXPECT_FLOAT_EQ(static_cast<float>(rate.error), 0.1F);
  Rate none;
  RateSums().fill(1, none);
  EXPECT_EQ(none.ops, 0u);
}

TEST(RateSums, TheErrorIsTheMedianOne) {
  RateSums sums;
  for (const double error : {90, 10, 20}) sums.add(1000, 100, error);
  Rate rate;
  sums.fill(1, rate);
  EXPECT_FLOAT_EQ(static_cast<float>(rate.error), 0.2F);
}

// Two ranks; their GPU times in ms, by rank.
struct Times {
  double first_start, first_end, second_start, second_end;
};
Job one_operation(const std::string& func, Times times, bool two_hosts = false) {
  JobBuilder builder(2, two_hosts ? 1 : 0);
  const uint32_t comm = builder.world();
  builder.call(0, comm,
               {.func = func,
                .called_ms = 0,
                .bytes = 64 * kMiB,
                .gpu_start_ms = times.first_start,
                .gpu_end_ms = times.first_end});
  builder.call(1, comm,
               {.func = func,
                .called_ms = 0,
                .bytes = 64 * kMiB,
                .gpu_start_ms = times.second_start,
                .gpu_end_ms = times.second_end});
  return builder.build();
}

TEST(BandwidthRates, WithARootCountsFromTheLastArrivalToTheLastEnd) {
  EXPECT_NEAR(measure(one_operation("Broadcast", {1, 2, 1.5, 4})).rates.at(0).time_ns, 2.5e6, 1);
  EXPECT_NEAR(measure(one_operation("Broadcast", {1.5, 4, 1, 2})).rates.at(0).time_ns, 2.5e6, 1);
  EXPECT_NEAR(measure(one_operation("AllReduce", {1, 3, 1.5, 4})).rates.at(0).time_ns, 2e6, 1);
}

TEST(BandwidthRates, TheClockOfAnotherHostAddsToTheErrorOfThoseWithARoot) {
  auto measured = [](const std::string& func, int64_t half_width) {
    Job job = one_operation(func, {1, 2, 1, 2}, true);
    job.hosts[1].clock = model::HostClock({{testing::at_ms(0), -half_width, half_width, true},
                                           {testing::at_ms(10), -half_width, half_width, false}});
    return measure(job).rates.at(0);
  };
  const Rate known = measured("Broadcast", 50'000);
  EXPECT_EQ(known.hosts, 2u);
  EXPECT_NEAR(known.error, 2 * (50'000 + 1'000) / 1e6, 1e-5);
  EXPECT_EQ(known.ops, 1u);
  const Rate unknown = measured("Broadcast", 499'500);
  EXPECT_EQ(unknown.ops, 0u) << "1 ms, give or take as much and a bit";
  EXPECT_EQ(unknown.uncertain, 1u);
  EXPECT_FALSE(unknown.slowest);
  EXPECT_EQ(measured("Broadcast", 498'000).ops, 1u);
  const Rate own = measured("AllReduce", 499'500);
  EXPECT_EQ(own.error, 0) << "no two clocks are compared";
  EXPECT_EQ(own.ops, 1u);
}

TEST(BandwidthRates, AnOperationOfUnknownPlaceHasADurationAlone) {
  for (const char* func : {"AllReduce", "Broadcast"}) {
    Job job = one_operation(func, {1, 2, 1, 2});
    job.processes[1].ops.gpu_source[0] = static_cast<uint8_t>(model::GpuTimeSource::kInspector);
    const Rate rate = measure(job).rates.at(0);
    EXPECT_EQ(rate.ops, func == std::string("AllReduce") ? 1u : 0u);
    EXPECT_EQ(rate.uncertain, 1 - rate.ops);
  }
}

TEST(BandwidthRates, SayOfEachOperationWhatTheyCount) {
  JobBuilder builder(4);
  const uint32_t world = builder.world();
  for (uint32_t i = 0; i < 5; ++i) {
    const double at = i * 10, ms = i == 3 ? 4 : 1;
    for (uint32_t rank = 0; rank < 4; ++rank)
      builder.call(rank, world,
                   {.called_ms = at, .bytes = 64 * kMiB, .gpu_start_ms = at, .gpu_end_ms = at + ms});
  }
  // Not timed by all.
  for (uint32_t rank = 0; rank < 4; ++rank) {
    if (rank == 2)
      builder.call(rank, world, {.called_ms = 60, .bytes = 64 * kMiB});
    else
      builder.call(rank, world, {.called_ms = 60, .bytes = 64 * kMiB, .gpu_start_ms = 60, .gpu_end_ms = 61});
  }
  const Job job = builder.build();
  std::vector<Moved> moved;
  const Rates rates = measure(job, [&](const Moved& of) { moved.push_back(of); });
  EXPECT_EQ(rates.ops, 6u);
  EXPECT_EQ(rates.untimed, 1u);
  ASSERT_EQ(rates.rates.size(), 1u);
  const Rate& rate = rates.rates[0];
  EXPECT_EQ(rate.comm, world);
  EXPECT_EQ(rate.ranks, 4);
  EXPECT_EQ(rate.hosts, 1u);
  EXPECT_EQ(rate.size_from, 64 * kMiB);
  EXPECT_EQ(rate.size_to, 128 * kMiB);
  EXPECT_EQ(rate.ops, 5u);
  EXPECT_EQ(rate.bytes, 5 * 64 * kMiB);
  EXPECT_NEAR(rate.time_ns, 8e6, 1);
  EXPECT_NEAR(rate.busbw.middle, kFast * 1.5, 0.01) << "2 (n - 1) / n";
  ASSERT_TRUE(rate.slowest);
  EXPECT_EQ(rate.slowest->index, 3u);
  EXPECT_NEAR(rate.slowest->busbw, kFast / 4 * 1.5, 0.01);
  ASSERT_EQ(moved.size(), 5u);
  EXPECT_EQ(moved[4].ranks, 4u);
  EXPECT_EQ(moved[4].bytes, 64 * kMiB);
  EXPECT_NEAR(moved[4].time_ns, 1e6, 1);
  EXPECT_EQ(moved[4].factor, 1.5);
  EXPECT_EQ(moved[4].op, 4u);
  EXPECT_EQ(job.text(moved[4].func), "AllReduce");
  EXPECT_NEAR(operation_busbw(job, world, 3).value_or(0), kFast / 4 * 1.5, 0.01);
  EXPECT_FALSE(operation_busbw(job, world, 5)) << "one rank has no GPU times of it";
  EXPECT_FALSE(operation_busbw(job, world, 6)) << "nobody called it";
}

TEST(BandwidthRates, AMissingMemberLeavesNothingToMeasure) {
  JobBuilder builder(3);
  const uint32_t world = builder.world();
  builder.steps(world, 4, 0, 10);
  builder.without(2);
  const Job job = builder.build();
  EXPECT_TRUE(measure(job).rates.empty());
  EXPECT_FALSE(operation_busbw(job, world, 0));
  JobBuilder alone(1);
  alone.steps(alone.world(), 4, 0, 10);
  EXPECT_TRUE(measure(alone.build()).rates.empty()) << "it moves nothing to anybody";
}

TEST(BandwidthRates, CommunicatorsOfSeveralNodesHaveNoCeiling) {
  for (const int nodes : {-1, 1, 2}) {
    Job job = one_operation("AllReduce", {1, 2, 1, 2});
    for (uint32_t rank : {0u, 1u}) job.processes[rank].row.gpu_model = job.strings.intern("NVIDIA H200");
    job.comms[0].nodes = nodes;
    EXPECT_EQ(measure(job).rates.at(0).ceiling.has_value(), nodes <= 1) << nodes;
  }
}

TEST(BandwidthRates, BucketsArePowersOfTwo) {
  Rate rate;
  rate.set_bucket(0);
  EXPECT_EQ(rate.size_from, 0u);
  EXPECT_EQ(rate.size_to, 1u);
  rate.set_bucket(1);
  EXPECT_EQ(rate.size_from, 1u);
  EXPECT_EQ(rate.size_to, 2u);
  rate.set_bucket(63);
  EXPECT_EQ(rate.size_to, uint64_t{1} << 63);
  rate.set_bucket(64);
  EXPECT_EQ(rate.size_from, uint64_t{1} << 63);
  EXPECT_EQ(rate.size_to, UINT64_MAX);
}

// 64 MiB from rank 0 to rank 1, whose GPU times are these.
void transfer(JobBuilder& builder, uint64_t sent, uint64_t got, Times times) {
  builder.call(0, 0,
               {.func = "Send",
                .called_ms = 0,
                .bytes = sent,
                .peer = 1,
                .gpu_start_ms = times.first_start,
                .gpu_end_ms = times.first_end});
  builder.call(1, 0,
               {.func = "Recv",
                .called_ms = 0,
                .bytes = got,
                .peer = 0,
                .gpu_start_ms = times.second_start,
                .gpu_end_ms = times.second_end});
}

TEST(BandwidthPairs, CountWhatBothEndsTimedAndAgreeOn) {
  JobBuilder builder(2);
  builder.world();
  for (uint32_t rank : {0u, 1u}) builder.process(rank).row.gpu_model = builder.text("NVIDIA H200");
  transfer(builder, 64 * kMiB, 64 * kMiB, {1, 5, 3, 5});
  transfer(builder, 64 * kMiB, 32 * kMiB, {6, 7, 6, 7});
  transfer(builder, 0, 0, {8, 9, 8, 9});
  transfer(builder, 64 * kMiB, 64 * kMiB, {10, 11, -1, -1});
  transfer(builder, 64 * kMiB, 64 * kMiB, {-1, -1, 10, 11});
  transfer(builder, 64 * kMiB, 64 * kMiB, {12, 13, 12, 16});
  Job job = builder.build();
  std::vector<Moved> moved;
  const Rates rates = measure(job, [&](const Moved& of) { moved.push_back(of); });
  ASSERT_EQ(rates.pairs.size(), 1u);
  const Rate& rate = rates.pairs[0];
  EXPECT_EQ(rate.ops, 2u);
  EXPECT_EQ(rate.ranks, 2);
  EXPECT_EQ(rate.hosts, 1u);
  EXPECT_EQ(rate.size_from, 64 * kMiB);
  EXPECT_NEAR(rate.time_ns, 3e6, 1);
  EXPECT_EQ(rate.bytes, 128 * kMiB);
  EXPECT_TRUE(rate.ceiling);
  ASSERT_EQ(moved.size(), 2u);
  EXPECT_EQ(moved[0].ranks, 2u);
  EXPECT_EQ(moved[0].factor, 1);
  EXPECT_EQ(moved[1].op, 5u);
  EXPECT_NEAR(moved[0].time_ns, 2e6, 1);
  job.comms[0].nodes = 2;
  EXPECT_FALSE(measure(job).pairs.at(0).ceiling);
}

constexpr double k95 = 1.96;  // of a normal distribution: 95 % lie within so many deviations

// Numbers of operations that give each point the weight 1: a line through four points, worked out by hand.
TEST(Fit, IsTheLineWithTheLeastRelativeErrors) {
  std::vector<Point> points;
  for (auto [bytes, time] : {std::pair{1.0, 10.0}, {2.0, 13.0}, {3.0, 15.0}, {4.0, 18.0}})
    points.push_back({bytes, time, time * time});
  Fit line;
  ASSERT_TRUE(fit(points, line));
  EXPECT_EQ(line.sizes, 4u);
  EXPECT_NEAR(line.alpha_ns, 7.5, 1e-9);
  EXPECT_NEAR(line.beta_gbps, 1 / 2.6, 1e-9);
  const double variance = 0.2 / 2, slope_error = k95 * std::sqrt(variance / 5);
  EXPECT_NEAR(line.alpha_error_ns, k95 * std::sqrt(variance * (1.0 / 4 + 6.25 / 5)), 1e-9);
  EXPECT_NEAR(line.beta_low_gbps, 1 / (2.6 + slope_error), 1e-9);
  EXPECT_NEAR(line.beta_high_gbps, 1 / (2.6 - slope_error), 1e-9);
}

TEST(Fit, OperationsAndShortTimesWeighMore) {
  Fit line;
  // Weights 1, 2, 1; residuals -1, 1, -1.
  ASSERT_TRUE(fit({{1, 10, 100}, {2, 14, 2 * 196}, {3, 14, 196}}, line));
  EXPECT_NEAR(line.alpha_ns, 9, 1e-9);
  EXPECT_NEAR(line.beta_gbps, 0.5, 1e-9);
  EXPECT_NEAR(line.alpha_error_ns, k95 * std::sqrt(4 * (1.0 / 4 + 4.0 / 2)), 1e-9);
  EXPECT_EQ(line.beta_high_gbps, 0) << "unbounded: the slope is less sure than large";
}

TEST(Fit, NeedsThreePointsAndARisingLine) {
  Fit line;
  EXPECT_TRUE(fit({{1, 10, 1}, {2, 11, 1}, {3, 12, 1}}, line));
  EXPECT_FALSE(fit({{1, 10, 1}, {2, 11, 1}}, line));
  EXPECT_FALSE(fit({{1, 10, 1}, {2, 10, 1}, {3, 10, 1}}, line));
  EXPECT_FALSE(fit({{1, 12, 1}, {2, 11, 1}, {3, 10, 1}}, line));
  EXPECT_FALSE(fit({{2, 10, 1}, {2, 11, 1}, {2, 12, 1}}, line)) << "one size";
}

TEST(Fit, OfACommunicatorGoesThroughTheMediansOfItsSizes) {
  JobBuilder builder(2);
  const uint32_t world = builder.world();
  double at = 0;
  for (uint32_t mib : {1, 2, 4, 8}) {
    for (const double more : {0.0, 0.0, 0.5}) {
      for (uint32_t rank : {0u, 1u})
        builder.call(rank, world,
                     {.called_ms = at,
                      .bytes = mib * kMiB,
                      .gpu_start_ms = at,
                      .gpu_end_ms = at + 1 + mib * 0.1 + more});
      at += 10;
    }
  }
  const Rates rates = measure(builder.build());
  ASSERT_EQ(rates.fits.size(), 1u);
  EXPECT_EQ(rates.fits[0].sizes, 4u);
  EXPECT_NEAR(rates.fits[0].alpha_ns, 1e6, 1e3);
  EXPECT_NEAR(rates.fits[0].beta_gbps, kMiB / 0.1e6, 0.01);
  EXPECT_EQ(rates.rates.size(), 4u);
}

}  // namespace
}  // namespace lockstep::analysis::bandwidth
