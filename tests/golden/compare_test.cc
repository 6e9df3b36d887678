// SPDX-License-Identifier: Apache-2.0
// Pairs of runs: recordings of eight H200s, and simulated jobs that are run again with what varies from run
// to run, and with a class of operations or a rank slowed down.
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/compare/comparison.h"
#include "cli/compare/gate.h"
#include "golden/tape_run.h"
#include "job/assemble/assembled_source.h"
#include "job/clock/clock.h"
#include "job/gather/gather.h"
#include "job/job.h"
#include "job/match/match.h"
#include "readers/reader.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::golden {
namespace {

using analysis::compare::Change;
using analysis::compare::Comparison;
using analysis::compare::Level;
using analysis::compare::Metric;
using analysis::compare::Row;
using analysis::compare::Samples;
using State = cli::compare::GateResult::State;

Samples samples_of(model::TraceSource& source) {
  auto job = job::gather::gather(source, {});
  EXPECT_TRUE(job);
  if (!job) return {};
  std::vector<analysis::Finding> findings;
  job::match::align(*job);
  job::clock::align(*job, findings);
  return analysis::compare::take(*job);
}

Samples recorded(const std::string& folder) {
  std::vector<std::string> tapes;
  for (int rank = 0; rank < 8; ++rank)
    tapes.push_back(std::string(LOCKSTEP_SOURCE_DIR "/") + folder + "/rank" + std::to_string(rank) +
                    ".jsonl.gz");
  auto run = TapeRun::open(tapes, true);
  EXPECT_TRUE(run) << run.error().message();
  return run ? samples_of(**run) : Samples();
}

// Eight ranks in two tensor groups' worth of hosts, with GPU times.
sim::job::JobOptions options(uint64_t again, int steps = 120) {
  sim::job::JobOptions options;
  options.seed = 1;
  options.again = again;
  options.layout.ranks = 8;
  options.layout.tp = 2;
  options.program.ops_per_step = 20;
  options.steps = steps;
  options.mode = format::Mode::kDeep;
  return options;
}

Samples simulated(sim::job::Job job) {
  const test::TemporaryFolder folder;
  const std::string& dir = folder.path();
  EXPECT_TRUE(sim::job::write_run(job, dir, 2));
  auto source = readers::open({dir});
  EXPECT_TRUE(source) << source.error().message();
  Samples samples = samples_of(*job::assemble::assembled(std::move(*source)));
  return samples;
}
Samples simulated(const sim::job::JobOptions& options) {
  return simulated(std::move(sim::job::Job::make(options).value()));
}

std::vector<State> judged(const std::string& gates, const Comparison& comparison) {
  const auto parsed = cli::compare::parse_gates(gates);
  std::vector<State> states;
  for (const auto& gate : *parsed) states.push_back(cli::compare::judge(gate, comparison).state);
  return states;
}

size_t changes(const Comparison& comparison) {
  size_t count = 0;
  for (const Row& row : comparison.rows)
    count += row.change == Change::kWorse || row.change == Change::kBetter;
  return count;
}

TEST(ComparedRecordings, OneRunAgainstItselfHasNotChanged) {
  auto source = readers::open({LOCKSTEP_SOURCE_DIR "/tests/data/inspector"});
  ASSERT_TRUE(source) << source.error().message();
  const Samples run = samples_of(*job::assemble::assembled(std::move(*source)));
  const Comparison found = analysis::compare::compare(run, run);
  EXPECT_EQ(run.steps_by, Samples::Steps::kOperations) << "a loop over two sizes";
  EXPECT_EQ(changes(found), 0U);
  size_t known = 0;
  for (const Row& row : found.rows) {
    if (!row.ratio) continue;
    ++known;
    EXPECT_NEAR(row.ratio->ratio, 1, 1e-6);
    EXPECT_LT(row.ratio->low, 1);
    EXPECT_GT(row.ratio->high, 1);
  }
  EXPECT_GE(known, 4U) << "AllReduce of 8 B and of 1 MiB, and their sums";
}

TEST(ComparedRecordings, EightStepsTellNothing) {
  const Comparison found =
      analysis::compare::compare(recorded("examples/recordings/train2h"), recorded("tests/data/straggler"));
  EXPECT_EQ(changes(found), 0U);
  EXPECT_EQ(judged("step<=1.03", found), std::vector{State::kCannotTell});
  EXPECT_GT(found.rows.size(), 10U);
  for (const Row& row : found.rows) EXPECT_FALSE(row.ratio) << static_cast<int>(row.metric);
}

TEST(ComparedJobs, FiftyHealthyPairsRaiseNoAlarm) {
  constexpr uint64_t kPairs = test::kSanitized ? 3 : 50;
  const Samples a = simulated(options(0));
  size_t passed = 0, called = 0;
  for (uint64_t again = 1; again <= kPairs; ++again) {
    const Comparison found = analysis::compare::compare(a, simulated(options(again)));
    for (State state : judged("busbw>=0.97,busbw:allreduce>=0.97,step<=1.03,lateness<=1.03", found)) {
      EXPECT_NE(state, State::kRegressed) << again;
      passed += state == State::kPass;
    }
    // A GPU of another run computes up to 0.1 % faster: its waiting, and so its durations, are truly
    // different.
    for (const Row& row : found.rows)
      called += row.metric != Metric::kDuration && row.change != Change::kNone;
  }
  RecordProperty("passed", std::to_string(passed));
  RecordProperty("called", std::to_string(called));
  EXPECT_GE(passed, kPairs * 4 * 19 / 20) << "of four a pair: enough samples to tell";
  EXPECT_LE(called, kPairs / 10);
}

TEST(ComparedJobs, AClassThatLosesThreeAndTenPercentIsNamed) {
  const Samples a = simulated(options(0));
  for (double factor : {1.03, 1.1}) {
    sim::job::JobOptions slow = options(60);
    slow.slow_funcs = {{sim::job::Func::kAllReduce, factor, 0}};
    const Comparison found = analysis::compare::compare(a, simulated(slow));
    const Row* of = found.find(Metric::kBusbw, Level::kFunc, "allreduce", 0);
    ASSERT_NE(of, nullptr);
    EXPECT_EQ(of->change, Change::kWorse) << factor;
    // What the GPU needs for the last of a ring's data after the operation is not slowed.
    EXPECT_NEAR(of->ratio->ratio, 1 / factor, 0.012) << factor;
    EXPECT_TRUE(of->since && of->since->from_begin);
    for (const Row& row : found.rows) {
      if (row.metric != Metric::kBusbw || row.func == "AllReduce" || row.level == Level::kJob) continue;
      EXPECT_NE(row.change, Change::kWorse) << row.func;
    }
    const std::vector<State> states = judged("busbw:allreduce>=0.95,busbw:broadcast>=0.95", found);
    EXPECT_EQ(states[0], factor > 1.05 ? State::kRegressed : State::kPass);
    EXPECT_EQ(states[1], State::kPass);
  }
}

TEST(ComparedJobs, AClassThatIsSlowFromAStepOnIsNamedWithIt) {
  sim::job::JobOptions slow = options(61);
  slow.slow_funcs = {{sim::job::Func::kAllReduce, 1.1, 70}};
  const Comparison found = analysis::compare::compare(simulated(options(0)), simulated(slow));
  const Row* of = found.find(Metric::kBusbw, Level::kFunc, "allreduce", 0);
  ASSERT_NE(of, nullptr);
  ASSERT_TRUE(of->since);
  EXPECT_NEAR(static_cast<double>(of->since->step), 70, 2);
  EXPECT_NEAR(of->since->ratio->ratio, 1 / 1.1, 0.015);
}

TEST(ComparedJobs, ARankThatIsLateFromStep210OnIsNamed) {
  auto job = std::move(sim::job::Job::make(options(62, 300)).value());
  job.fault.disturbance.delays.push_back({.rank = 5, .from_step = 210, .host_us = 4000});
  const Comparison found = analysis::compare::compare(simulated(options(0, 300)), simulated(std::move(job)));
  for (const Row& row : found.rows) {
    if (row.metric != Metric::kLateness || row.level != Level::kRank) continue;
    EXPECT_EQ(row.change == Change::kWorse, row.rank == 5) << row.rank;
    if (row.rank != 5) continue;
    ASSERT_TRUE(row.since);
    EXPECT_NEAR(static_cast<double>(row.since->step), 210, 1);
    EXPECT_FALSE(row.since->until_step);
  }
  EXPECT_EQ(judged("step<=1.03,lateness<=1.03", found), (std::vector{State::kRegressed, State::kRegressed}));
}

}  // namespace
}  // namespace lockstep::golden
