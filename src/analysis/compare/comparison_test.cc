// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/comparison.h"

#include <gtest/gtest.h>

#include <random>

#include "analysis/testing/job_builder.h"

namespace lockstep::analysis::compare {
namespace {

constexpr size_t kSteps = 200;
constexpr uint8_t kKernel = static_cast<uint8_t>(model::GpuTimeSource::kCupti);

// A run of made-up figures around given ones.
class MadeUp {
 public:
  explicit MadeUp(uint64_t seed, size_t steps = kSteps) : random_(seed), steps_(steps) {
    samples_.steps_by = Samples::Steps::kMarks;
    samples_.processes = 2;
    samples_.ranks = {0, 1};
    samples_.begin_ns = 1;
    for (size_t i = 0; i < steps; ++i) {
      samples_.blocks.push_back(
          {.number = static_cast<int64_t>(i + 2), .begin_ns = static_cast<int64_t>(i + 2) * 1000});
      samples_.step.add(i, 10e6 * noise(0.01), 1);
    }
    samples_.comms.push_back(comm("dp", 2));
  }
  static CommSamples comm(const std::string& name, int32_t ranks) {
    CommSamples of;
    of.name = of.label = name;
    of.ranks = ranks;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      of.members.push_back(rank);
      of.processes.insert(static_cast<uint32_t>(rank));
    }
    return of;
  }
  uint32_t add_comm(const std::string& name, int32_t ranks = 2) {
    samples_.comms.push_back(comm(name, ranks));
    return static_cast<uint32_t>(samples_.comms.size() - 1);
  }
  uint32_t add_comm(const std::string& name, std::vector<int32_t> ranks) {
    CommSamples of = comm(name, 0);
    of.ranks = static_cast<int32_t>(ranks.size());
    of.processes.insert(ranks.begin(), ranks.end());
    of.members = std::move(ranks);
    samples_.comms.push_back(std::move(of));
    return static_cast<uint32_t>(samples_.comms.size() - 1);
  }
  // All-reduces of 1 MiB that take `ns` each, and `factor` times that from a step on.
  MadeUp& moving(const std::string& func, double ns, double factor = 1, size_t from = 0, uint32_t comm = 0,
                 uint8_t source = kKernel) {
    ClassSamples& of = samples_.moving[{func, 21, comm, source}];
    of.factor = 1;
    for (size_t i = 0; i < steps_; ++i)
      of.series.add(i, 4 * ns * noise(0.03) * (i >= from ? factor : 1), 4 << 20);
    of.ops += 4 * steps_;
    of.bytes += static_cast<double>(steps_) * (4 << 20);
    return *this;
  }
  MadeUp& late(int32_t rank, double ns, size_t from = 0) {
    for (size_t i = 0; i < steps_; ++i) samples_.late[rank].add(i, (i >= from ? ns : 0) * noise(0.1), 1);
    return *this;
  }
  double noise(double spread) { return std::exp(spread * normal_(random_)); }
  Samples& samples() { return samples_; }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  size_t steps_;
  Samples samples_;
};

const Row& row(const Comparison& of, Metric metric, Level level, const std::string& func = "") {
  for (const Row& row : of.rows) {
    if (row.metric == metric && row.level == level && row.func == func) return row;
  }
  ADD_FAILURE() << "no such row";
  return of.rows.front();
}
bool noted(const Comparison& of, const std::string& text) {
  for (const std::string& note : of.notes) {
    if (note.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(Comparison, FindsAClassThatIsSlowerAndNothingElse) {
  const Comparison found =
      compare(MadeUp(1).moving("AllReduce", 50e3).moving("AllGather", 50e3).samples(),
              MadeUp(2).moving("AllReduce", 50e3, 1.03).moving("AllGather", 50e3).samples());
  const Row& slow = row(found, Metric::kBusbw, Level::kComm, "AllReduce");
  EXPECT_EQ(slow.change, Change::kWorse);
  EXPECT_NEAR(slow.ratio->ratio, 1 / 1.03, 0.01);
  EXPECT_NEAR(slow.a, (1 << 20) / 50e3, 0.2);
  EXPECT_NEAR(slow.cost_ns, 4 * 50e3 * 0.03, 2e3);
  ASSERT_TRUE(slow.since);
  EXPECT_TRUE(slow.since->from_begin);
  EXPECT_EQ(row(found, Metric::kBusbw, Level::kComm, "AllGather").change, Change::kNone);
  EXPECT_EQ(row(found, Metric::kStep, Level::kJob).change, Change::kNone);
  EXPECT_EQ(row(found, Metric::kBusbw, Level::kFunc, "AllReduce").change, Change::kWorse);
}

TEST(Comparison, SaysSinceWhen) {
  const Comparison found = compare(MadeUp(1).moving("AllReduce", 50e3).samples(),
                                   MadeUp(2).moving("AllReduce", 50e3, 1.1, 120).samples());
  const Row& slow = row(found, Metric::kBusbw, Level::kComm, "AllReduce");
  ASSERT_TRUE(slow.since);
  EXPECT_FALSE(slow.since->from_begin);
  EXPECT_NEAR(static_cast<double>(slow.since->step), 122, 4) << "the first step that counts is step 2";
  EXPECT_EQ(slow.since->begin_ns, slow.since->step * 1000);
  EXPECT_NEAR(slow.since->ratio->ratio, 1 / 1.1, 0.01);
  EXPECT_FALSE(slow.since->until_step);
}

TEST(Comparison, NamesARankThatIsLate) {
  const Comparison found = compare(MadeUp(1).late(0, 1e3).late(1, 1e3).samples(),
                                   MadeUp(2).late(0, 1e3).late(1, 1e6, 100).samples());
  for (const Row& of : found.rows) {
    if (of.level != Level::kRank) continue;
    EXPECT_EQ(of.change == Change::kWorse, of.rank == 1) << of.rank;
  }
  const Row& latest = row(found, Metric::kLateness, Level::kJob);
  EXPECT_EQ(latest.change, Change::kWorse);
  EXPECT_NEAR(latest.ratio->ratio, 1.05, 0.005) << "of a step of 10 ms, half of which lose 1 ms";
  EXPECT_NEAR(static_cast<double>(latest.since->step), 102, 3);
}

TEST(Comparison, DoesNotCallChanceAChange) {
  size_t called = 0, pairs = 0;
  for (uint64_t seed = 1; seed <= 40; seed += 2) {
    MadeUp a(seed), b(seed + 1);
    for (int i = 0; i < 40; ++i) {
      const std::string func = "f" + std::to_string(i);
      a.moving(func, 50e3);
      b.moving(func, 50e3);
    }
    const Comparison found = compare(a.samples(), b.samples());
    EXPECT_EQ(found.tested, 42U) << "40 classes, their sum, and the step";
    size_t of_pair = 0;
    for (const Row& of : found.rows) of_pair += of.change != Change::kNone;
    called += of_pair;
    pairs += of_pair > 0;
  }
  EXPECT_LE(pairs, 2U) << "of 20 pairs of equal runs";
  EXPECT_LE(called, 6U);
}

TEST(Comparison, OfTooFewStepsCannotTell) {
  const Comparison found = compare(MadeUp(1, 15).moving("AllReduce", 50e3).samples(),
                                   MadeUp(2).moving("AllReduce", 50e3, 2).samples());
  const Row& of = row(found, Metric::kBusbw, Level::kComm, "AllReduce");
  EXPECT_EQ(of.change, Change::kCannotTell);
  EXPECT_FALSE(of.ratio);
  EXPECT_EQ(of.reason, "only 15 steps in A; at least 16 are needed");
}

TEST(Comparison, TimesOfDifferentKindsDoNotCompare) {
  const Comparison found =
      compare(MadeUp(1).moving("AllReduce", 50e3).samples(),
              MadeUp(2)
                  .moving("AllReduce", 90e3, 1, 0, 0, static_cast<uint8_t>(model::GpuTimeSource::kKernelCh))
                  .samples());
  EXPECT_EQ(found.find(Metric::kBusbw, Level::kFunc, "AllReduce", 0), nullptr);
  EXPECT_TRUE(noted(found, "(Cupti and KernelCh)"));
}

TEST(Comparison, OfAnotherSizeComparesBandwidthsAlone) {
  MadeUp a(1), b(2);
  const uint32_t in_a = a.add_comm("world", 2), in_b = b.add_comm("world", 4);
  a.moving("AllReduce", 50e3, 1, 0, in_a);
  b.moving("AllReduce", 50e3, 1, 0, in_b);
  a.samples().durations = a.samples().moving;
  b.samples().durations = b.samples().moving;
  const Comparison found = compare(a.samples(), b.samples());
  EXPECT_NE(found.find(Metric::kBusbw, Level::kFunc, "AllReduce", 0), nullptr);
  EXPECT_EQ(found.find(Metric::kDuration, Level::kFunc, "AllReduce", 0), nullptr);
  EXPECT_TRUE(noted(found, "world (2 and 4 ranks)"));
  EXPECT_FALSE(noted(found, "lacks")) << "both have it";
}

TEST(Comparison, SaysWhatOneRunLacks) {
  MadeUp a(1), b(2);
  a.add_comm("only_a");
  a.moving("AllReduce", 50e3).moving("Broadcast", 50e3).late(0, 1e3);
  b.moving("AllReduce", 50e3);
  b.samples().processes = 1;
  const Comparison found = compare(a.samples(), b.samples());
  EXPECT_TRUE(noted(found, "communicators only in A: only_a"));
  EXPECT_TRUE(noted(found, "busbw: B lacks Broadcast of 1 MiB or more in dp"));
  EXPECT_FALSE(noted(found, "A lacks"));
  EXPECT_TRUE(noted(found, "lateness is known for A alone"));
  EXPECT_TRUE(noted(found, "A has 2 process"));
}

TEST(Comparison, SaysWhatOneRunLacksWhereAClockDiffers) {
  constexpr auto kOther = static_cast<uint8_t>(model::GpuTimeSource::kKernelCh);
  MadeUp a(1), b(2);
  b.add_comm("only_b");
  a.moving("AllReduce", 50e3).moving("Broadcast", 50e3);
  b.moving("AllReduce", 50e3, 1, 0, 0, kOther)
      .moving("Broadcast", 50e3)
      .moving("Broadcast", 50e3, 1, 0, 0, kOther);
  b.moving("AllGather", 50e3).moving("Reduce", 50e3, 1, 0, 1);
  const Comparison found = compare(a.samples(), b.samples());
  EXPECT_TRUE(noted(found, "do not compare: AllReduce of 1 MiB or more in dp (Cupti and KernelCh)"));
  EXPECT_TRUE(noted(found, "busbw: A lacks AllGather of 1 MiB or more in dp"));
  EXPECT_FALSE(noted(found, "lacks AllReduce"));
  EXPECT_FALSE(noted(found, "Broadcast")) << "that is compared";
  EXPECT_FALSE(noted(found, "Reduce of 1 MiB or more in only_b")) << "the note of its communicator says so";
  EXPECT_FALSE(noted(found, "B lacks"));
}

TEST(Comparison, SumsWeighClassesAsRunADoes) {
  // B calls the large ones half as often; each class is as fast as in A.
  MadeUp a(1), b(2);
  a.moving("AllReduce", 50e3);
  b.moving("AllReduce", 50e3);
  ClassSamples large;
  for (size_t i = 0; i < kSteps; ++i) large.series.add(i, 10e6, 64 << 20);
  large.ops = kSteps;
  large.bytes = 1;
  a.samples().moving[{"AllReduce", 27, 0, kKernel}] = large;
  for (size_t i = 0; i < kSteps; i += 2) large.series.sums[i] = large.series.units[i] = 0;
  b.samples().moving[{"AllReduce", 27, 0, kKernel}] = large;
  const Comparison found = compare(a.samples(), b.samples());
  const Row& of = row(found, Metric::kBusbw, Level::kFunc, "AllReduce");
  EXPECT_EQ(of.classes, 2U);
  EXPECT_NEAR(of.ratio->ratio, 1, 0.005);
  EXPECT_EQ(of.change, Change::kNone);
}

// Eight ranks, each in one of two tensor groups of four and in one of four data groups of two.
Samples of_tp_and_dp(uint64_t seed, double slow_tp, double slow_dp) {
  MadeUp of(seed);
  of.samples().processes = 8;
  for (int32_t i = 0; i < 2; ++i)
    of.moving("AllReduce", 50e3, slow_tp, 0,
              of.add_comm("tp" + std::to_string(i), std::vector{4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3}));
  for (int32_t i = 0; i < 4; ++i)
    of.moving("AllReduce", 200e3, slow_dp, 0, of.add_comm("dp" + std::to_string(i), std::vector{i, i + 4}));
  // As many times as there are ranks, of each.
  for (const auto& [key, moving] : of.samples().moving) {
    ClassSamples& durations = of.samples().durations[key] = moving;
    const auto ranks = static_cast<double>(of.samples().comms[key.comm].ranks);
    for (size_t i = 0; i < kSteps; ++i) {
      durations.series.sums[i] *= ranks;
      durations.series.units[i] = 4 * ranks;
    }
  }
  return of.samples();
}

TEST(Comparison, SumsCostARankWhatItsCommunicatorsDo) {
  const Samples a = of_tp_and_dp(1, 1, 1);
  const struct { double tp, dp; } slow[] = {{1.2, 1}, {1, 1.2}, {1.2, 1.2}};
  for (size_t i = 0; i < std::size(slow); ++i) {
    const Comparison found = compare(a, of_tp_and_dp(2 + i, slow[i].tp, slow[i].dp));
    const double cost = 4 * (50e3 * (slow[i].tp - 1) + 200e3 * (slow[i].dp - 1));
    for (Metric metric : {Metric::kBusbw, Metric::kDuration}) {
      EXPECT_NEAR(row(found, metric, Level::kJob).cost_ns, cost, 5e3) << i;
      EXPECT_NEAR(row(found, metric, Level::kFunc, "AllReduce").cost_ns, cost, 5e3) << i;
    }
  }
}

TEST(Comparison, TheSumOfOneClassCostsWhatTheClassDoes) {
  MadeUp a(1), b(2);
  a.samples().processes = b.samples().processes = 16;
  const Comparison found =
      compare(a.moving("AllReduce", 50e3).samples(), b.moving("AllReduce", 50e3, 1.2).samples());
  const double cost = row(found, Metric::kBusbw, Level::kComm, "AllReduce").cost_ns;
  EXPECT_NEAR(row(found, Metric::kBusbw, Level::kFunc, "AllReduce").cost_ns, cost, cost / 100);
}

TEST(Comparison, FindsRowsHoweverTheirFunctionIsSpelt) {
  const Comparison found =
      compare(MadeUp(1).moving("AllReduce", 50e3).samples(), MadeUp(2).moving("AllReduce", 50e3).samples());
  for (const char* func : {"allreduce", "all_reduce", "AllReduce", "ALL-REDUCE"})
    EXPECT_NE(found.find(Metric::kBusbw, Level::kFunc, func, 0), nullptr) << func;
  EXPECT_NE(found.find(Metric::kBusbw, Level::kSize, "allreduce", 1 << 20), nullptr);
  EXPECT_EQ(found.find(Metric::kBusbw, Level::kSize, "allreduce", 1 << 21), nullptr);
  EXPECT_EQ(found.find(Metric::kBusbw, Level::kFunc, "allreduce2", 0), nullptr);
}

TEST(Comparison, NamesFromOutsideAreMadeHarmless) {
  const std::string func = "f\x1b[2J" + std::string(1 << 16, 'x');
  MadeUp a(1), b(2);
  a.moving(func, 50e3).moving("\n\xff", 50e3);
  b.moving(func, 50e3);
  const Comparison found = compare(a.samples(), b.samples());
  for (const Row& of : found.rows) {
    EXPECT_LE(of.func.size(), 64U);
    EXPECT_EQ(of.func.find('\x1b'), std::string::npos);
  }
  EXPECT_TRUE(noted(found, "lacks ?? of 1 MiB or more in dp"));
}

TEST(Comparison, OfNothingIsEmpty) {
  const Comparison found = compare({}, {});
  EXPECT_TRUE(found.rows.empty());
  EXPECT_TRUE(noted(found, "nothing can be compared"));
}

TEST(Series, KeepsWhatMillionsOfOperationsAddUpTo) {
  constexpr int kOps = 1'000'000;
  for (double ns : {10e3, 10.3e3}) {
    Series series;
    for (int i = 0; i < kOps; ++i) series.add(0, ns, 1'000'003);
    EXPECT_NEAR(series.sums[0] / (kOps * ns), 1, 1e-9);
    EXPECT_NEAR(series.units[0] / (kOps * 1'000'003.0), 1, 1e-9);
  }
}

// From jobs.

model::Job job(uint32_t steps, double gpu_ms) {
  testing::JobBuilder builder(2);
  builder.steps(builder.world("dp"), steps, 5, 10, gpu_ms);
  return builder.build();
}

TEST(Samples, CountByStepsThatAreWholeAndWarm) {
  const Samples of = take(job(40, 2));
  EXPECT_EQ(of.steps_by, Samples::Steps::kPeriod);
  EXPECT_EQ(of.blocks.size(), 37U) << "neither the first two nor the last";
  EXPECT_EQ(of.blocks.front().number, 2);
  ASSERT_EQ(of.moving.size(), 1U);
  const auto& [key, moving] = *of.moving.begin();
  EXPECT_EQ(key.func, "AllReduce");
  EXPECT_EQ(moving.ops, 37U);
  EXPECT_DOUBLE_EQ(moving.series.units[0], 1 << 20);
  EXPECT_EQ(of.comms[0].processes, (std::set<uint32_t>{0, 1}));
  ASSERT_EQ(of.durations.size(), 1U);
  EXPECT_EQ(of.durations.begin()->second.ops, 74U) << "of both ranks";
  EXPECT_NEAR(of.step.sums[5], 10e6, 1e3);
  EXPECT_EQ(of.comms[0].label, "dp");
  EXPECT_EQ(of.ranks, (std::set<int32_t>{0, 1}));
}

TEST(Samples, WithoutGpuTimesHaveStepsAndLateness) {
  const Samples of = take(job(40, 0));
  EXPECT_TRUE(of.moving.empty());
  EXPECT_TRUE(of.durations.empty());
  EXPECT_EQ(of.step.sums.size(), 37U);
  EXPECT_EQ(of.late.size(), 2U);
}

TEST(Samples, OfARunWithoutOperationsAreEmpty) {
  const Samples none = take(model::Job());
  EXPECT_EQ(none.steps_by, Samples::Steps::kNone);
  testing::JobBuilder builder(2);
  builder.world();
  const Samples idle = take(builder.build());
  EXPECT_TRUE(idle.blocks.empty());
  EXPECT_TRUE(compare(none, idle).rows.empty());
}

TEST(Samples, KeepKernelsExposedTime) {
  model::Job of = job(40, 2);
  for (model::JobProcess& process : of.processes) {
    for (int64_t i = 0; i < 40; ++i) {
      process.gpu_steps.push_back({.number = i,
                                   .begin_ns = testing::at_ms(5 + 10.0 * static_cast<double>(i)),
                                   .end_ns = testing::at_ms(15 + 10.0 * static_cast<double>(i)),
                                   .is_whole = i < 39,
                                   .exposed_ns = 3'000'000});
    }
  }
  const Samples samples = take(of);
  ASSERT_EQ(samples.exposed.size(), 2U);
  EXPECT_EQ(samples.exposed.at(0).sums.size(), 37U);
  EXPECT_DOUBLE_EQ(samples.exposed.at(0).sums[0], 3e6);
}

}  // namespace
}  // namespace lockstep::analysis::compare
