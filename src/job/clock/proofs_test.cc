// SPDX-License-Identifier: Apache-2.0
// What a single operation proves of two clocks, as numbers: rank 0 on the reference host, rank 1 on another.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "analysis/testing/job_builder.h"
#include "job/clock/clock.h"

namespace lockstep::job::clock {
namespace {

using analysis::testing::Call;
using analysis::testing::JobBuilder;
using model::GpuTimeSource;
using model::Job;

constexpr double kError = 0.05;       // ms; of GPU times
constexpr double kTolerance = 0.006;  // ms; of rounding, and of the drift within a few ms
constexpr double kLoose = 400;        // ms

// Each rank's entry and end on the GPU, in ms of its own clock.
const Call kHere{.called_ms = 1, .gpu_start_ms = 2, .gpu_end_ms = 5, .launched_ms = 1.2};
const Call kThere{.called_ms = 101, .gpu_start_ms = 103, .gpu_end_ms = 106, .launched_ms = 101.2};
constexpr double kLow = (103 - kError) - (5 + kError);   // rank 0 did not leave before rank 1 had come
constexpr double kHigh = (106 + kError) - (2 - kError);  // nor rank 1 before rank 0

Call with(Call call, const std::string& func, int root = 0, int peer = -1) {
  call.func = func;
  call.root = root;
  call.peer = peer;
  return call;
}
void both(JobBuilder& builder, uint32_t comm, const std::string& func, int root = 0) {
  builder.call(0, comm, with(kHere, func, root));
  builder.call(1, comm, with(kThere, func, root));
}

// Bounds of the offset, in ms, where the operation was.
struct Proven {
  double low, high;
  bool has_low() const { return low > -200; }
  bool has_high() const { return high < 300; }
};
using Add = std::function<void(JobBuilder&, uint32_t)>;
using Change = std::function<void(Job&)>;

// `add` adds what is in question; a very long all-reduce beside it bounds the other side, far away.
Proven proven(const Add& add, const Change& change = {}) {
  JobBuilder builder(2, 1);
  const uint32_t world = builder.world(), loose = builder.comm("loose", {0, 1});
  add(builder, world);
  builder.call(0, loose, {.called_ms = 10, .gpu_start_ms = 10, .gpu_end_ms = 10 + kLoose});
  builder.call(1, loose, {.called_ms = 110, .gpu_start_ms = 110, .gpu_end_ms = 110 + kLoose});
  Job job = builder.build(false);
  for (model::JobProcess& process : job.processes) {
    for (int32_t& error : process.ops.gpu_error_ns)
      if (error >= 0) error = static_cast<int32_t>(kError * 1e6);
  }
  if (change) change(job);
  std::vector<analysis::Finding> findings;
  align(job, findings);
  EXPECT_TRUE(findings.empty());
  auto end = [&](double ms, int sign) {
    const auto offset = job.hosts[1].clock.offset(analysis::testing::at_ms(ms));
    return offset ? static_cast<double>(offset->ns + sign * offset->half_width_ns) * 1e-6 : sign * 1e9;
  };
  return {end(103 - kError, -1), end(106 + kError, 1)};
}

TEST(ClockProofs, WhoeverNeedsAllBoundsBothSides) {
  for (const char* func : {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll"}) {
    const Proven of = proven([&](JobBuilder& builder, uint32_t world) { both(builder, world, func); });
    EXPECT_NEAR(of.low, kLow, kTolerance) << func;
    EXPECT_NEAR(of.high, kHigh, kTolerance) << func;
  }
}

TEST(ClockProofs, WithARootOneSideIsBound) {
  for (const char* func : {"Broadcast", "Scatter", "Reduce", "Gather"}) {
    const bool all_need_root = func[0] == 'B' || func[0] == 'S';
    for (const int root : {0, 1}) {
      const Proven of =
          proven([&](JobBuilder& builder, uint32_t world) { both(builder, world, func, root); });
      const bool reference_comes_first = (root == 0) == all_need_root;  // rank 1 leaves after rank 0 has come
      EXPECT_EQ(of.has_high(), reference_comes_first) << func << root;
      EXPECT_EQ(of.has_low(), !reference_comes_first) << func << root;
      EXPECT_NEAR(of.has_high() ? of.high : kHigh, kHigh, kTolerance);
      EXPECT_NEAR(of.has_low() ? of.low : kLow, kLow, kTolerance);
    }
  }
}

TEST(ClockProofs, UnknownFunctionsProveNothing) {
  for (const int root : {0, -1}) {
    const Proven of =
        proven([&](JobBuilder& builder, uint32_t world) { both(builder, world, "Custom", root); });
    EXPECT_FALSE(of.has_low());
    EXPECT_FALSE(of.has_high());
  }
}

TEST(ClockProofs, AReceiveEndsAfterItsSendBegan) {
  const Proven sent = proven([](JobBuilder& builder, uint32_t world) {
    builder.call(0, world, with(kHere, "Send", 0, 1));
    builder.call(1, world, with(kThere, "Recv", 0, 0));
  });
  EXPECT_NEAR(sent.high, kHigh, kTolerance);
  EXPECT_FALSE(sent.has_low());
  const Proven received = proven([](JobBuilder& builder, uint32_t world) {
    builder.call(0, world, with(kHere, "Recv", 0, 1));
    builder.call(1, world, with(kThere, "Send", 0, 0));
  });
  EXPECT_NEAR(received.low, kLow, kTolerance);
  EXPECT_FALSE(received.has_high());
}

// The n-th of the one side with the n-th of the other, as many as both have.
TEST(ClockProofs, EachReceiveOfALaneCounts) {
  const Proven of = proven([](JobBuilder& builder, uint32_t world) {
    builder.call(0, world, {.func = "Send", .called_ms = 0, .peer = 1, .gpu_start_ms = 0, .gpu_end_ms = 500});
    builder.call(1, world, {.func = "Recv", .called_ms = 1, .peer = 0, .gpu_start_ms = 1, .gpu_end_ms = 600});
    builder.call(0, world, with(kHere, "Send", 0, 1));
    builder.call(1, world, with(kThere, "Recv", 0, 0));
    builder.call(0, world,
                 {.func = "Send", .called_ms = 90, .peer = 1, .gpu_start_ms = 90, .gpu_end_ms = 500});
  });
  EXPECT_NEAR(of.high, kHigh, kTolerance);
}

// What is known of an entry: the latest of the call, the launch and the kernel's begin.
TEST(ClockProofs, AnEntryIsTheLatestThatIsKnownOfIt) {
  auto low_of = [](const Call& there, const Change& change = {}) {
    return proven(
               [&](JobBuilder& builder, uint32_t world) {
                 builder.call(0, world, kHere);
                 builder.call(1, world, there);
               },
               change)
        .low;
  };
  const double left = 5 + kError;
  EXPECT_NEAR(low_of({.called_ms = 101}), 101.005 - left, kTolerance) << "launched 5 us after the call";
  EXPECT_NEAR(low_of({.called_ms = 101, .launched_ms = 102}), 102 - left, kTolerance);
  EXPECT_NEAR(low_of({.called_ms = 101, .launched_ms = 100}), 101 - left, kTolerance);
  EXPECT_NEAR(low_of({.called_ms = 60, .replayed_ms = 102}), 102 - left, kTolerance) << "a graph's replay";
  EXPECT_NEAR(low_of({.called_ms = 101, .gpu_start_ms = 101.02, .gpu_end_ms = 106}), 101.005 - left,
              kTolerance)
      << "less its error, the kernel began before the launch";
  EXPECT_NEAR(low_of({.called_ms = 101},
                     [](Job& job) {
                       std::fill(job.processes[1].ops.enqueued_ns.begin(),
                                 job.processes[1].ops.enqueued_ns.end(), analysis::testing::at_ms(102));
                     }),
              101.005 - left, kTolerance)
      << "when a call was enqueued says nothing: it is no replay";
}

TEST(ClockProofs, OnlyGpuTimesThatProveAnEndCount) {
  auto with_source = [](GpuTimeSource source, const char* algo, int32_t error) {
    return proven([](JobBuilder& builder, uint32_t world) { both(builder, world, "AllReduce"); },
                  [&](Job& job) {
                    for (model::JobProcess& process : job.processes) {
                      process.ops.gpu_source[0] = static_cast<uint8_t>(source);
                      process.ops.gpu_error_ns[0] = error;
                    }
                    for (model::Signature& s : job.signatures) s.algo = job.strings.intern(algo);
                  });
  };
  EXPECT_TRUE(with_source(GpuTimeSource::kCupti, "TREE", 50'000).has_low());
  EXPECT_TRUE(with_source(GpuTimeSource::kCupti, "TREE", 0).has_low()) << "exact";
  EXPECT_FALSE(with_source(GpuTimeSource::kCupti, "TREE", -1).has_low());
  EXPECT_FALSE(with_source(GpuTimeSource::kApi, "RING", 50'000).has_low());
  EXPECT_FALSE(with_source(GpuTimeSource::kKernelCh, "TREE", 50'000).has_low());
  EXPECT_TRUE(with_source(GpuTimeSource::kKernelCh, "RING", 50'000).has_low());
}

TEST(ClockProofs, MembersWhoseNumbersDoNotCompareProveNothing) {
  const Proven of = proven([](JobBuilder& builder, uint32_t world) { both(builder, world, "AllReduce"); },
                           [](Job& job) { job.members[1].alignment = model::Member::Alignment::kNone; });
  EXPECT_FALSE(of.has_low());
  EXPECT_FALSE(of.has_high());
}

// Of a host's ranks the first to leave and the last to enter bound the most, wherever they stand.
TEST(ClockProofs, OfSeveralRanksTheTightestTimesCount) {
  for (const bool first_leaves_first : {true, false}) {
    JobBuilder builder(3, 2);
    const uint32_t world = builder.world();
    for (const uint32_t rank : {0u, 1u}) {
      const bool leaves_first = (rank == 0) == first_leaves_first;
      builder.call(rank, world,
                   {.called_ms = leaves_first ? 1.0 : 3.0,
                    .gpu_start_ms = leaves_first ? 1.0 : 3.0,
                    .gpu_end_ms = leaves_first ? 5.0 : 9.0});
    }
    builder.call(2, world, {.called_ms = 103, .gpu_start_ms = 103, .gpu_end_ms = 106});
    Job job = builder.build(false);
    std::vector<analysis::Finding> findings;
    align(job, findings);
    const auto offset = job.hosts[1].clock.offset(analysis::testing::at_ms(104.5));
    ASSERT_TRUE(offset);
    EXPECT_NEAR(static_cast<double>(offset->ns - offset->half_width_ns) * 1e-6, 103 - 5, 0.02);
    EXPECT_NEAR(static_cast<double>(offset->ns + offset->half_width_ns) * 1e-6, 106 - 3, 0.02);
  }
}

// Three hosts: the third is known through the second, with the uncertainty of both.
TEST(ClockProofs, ThroughAnotherHostUncertaintiesAdd) {
  JobBuilder builder(3, 1);
  const uint32_t first = builder.comm("first", {0, 1}), second = builder.comm("second", {1, 2});
  builder.call(0, first, {.called_ms = 1, .gpu_start_ms = 2, .gpu_end_ms = 5});
  builder.call(1, first, {.called_ms = 101, .gpu_start_ms = 102, .gpu_end_ms = 105});
  builder.call(1, second, {.called_ms = 101, .gpu_start_ms = 102, .gpu_end_ms = 105});
  builder.call(2, second, {.called_ms = 301, .gpu_start_ms = 302, .gpu_end_ms = 305});
  Job job = builder.build(false);
  std::vector<analysis::Finding> findings;
  align(job, findings);
  const auto near = job.hosts[1].clock.offset(analysis::testing::at_ms(103)),
             far = job.hosts[2].clock.offset(analysis::testing::at_ms(303));
  ASSERT_TRUE(near);
  ASSERT_TRUE(far);
  EXPECT_NEAR(static_cast<double>(near->ns) * 1e-6, 100, 0.01);
  EXPECT_NEAR(static_cast<double>(near->half_width_ns) * 1e-6, 3.002, 0.01);
  EXPECT_NEAR(static_cast<double>(far->ns) * 1e-6, 300, 0.01);
  EXPECT_NEAR(static_cast<double>(far->half_width_ns) * 1e-6, 6.004, 0.02);
}

TEST(ClockFindings, ASharedClocksDifferenceIsMeasured) {
  JobBuilder builder(2, 1);
  const uint32_t world = builder.world();
  builder.call(0, world, {.called_ms = 5, .gpu_start_ms = 5.1, .gpu_end_ms = 5.2});
  builder.call(1, world, {.called_ms = 1, .gpu_start_ms = 1.1, .gpu_end_ms = 1.2});
  Job job = builder.build(true);
  std::vector<analysis::Finding> findings;
  align(job, findings);
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_TRUE(findings[0].effect) << "rank 1 left 4 ms before rank 0 came";
  EXPECT_NEAR(findings[0].effect->value, -4e6, 100);
  EXPECT_NEAR(findings[0].effect->low, -4.102e6, 200);
  EXPECT_NEAR(findings[0].effect->high, -3.898e6, 200);
  EXPECT_NEAR(findings[0].weight, 4e6, 100);
  EXPECT_EQ(job.hosts[1].contradictions, 1u);
  EXPECT_NE(findings[0].statement.find("host node1 and host node0, which share a clock"), std::string::npos);
}

TEST(ClockFindings, TheLargestStepIsTheWeightAndTheFirstEightAreShown) {
  JobBuilder builder(2, 1);
  const uint32_t world = builder.world();
  double offset = 0;
  for (int i = 0; i < 110; ++i) {
    if (i % 10 == 5 && i < 100) offset += i == 45 ? -30 : 20;
    for (const uint32_t rank : {0u, 1u}) {
      const double at = 100 + i * 40 + (rank == 1 ? offset : 0);
      builder.call(rank, world, {.called_ms = at, .gpu_start_ms = at, .gpu_end_ms = at + 0.1});
    }
  }
  Job job = builder.build(false);
  std::vector<analysis::Finding> findings;
  align(job, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(job.hosts[1].contradictions, 10u);
  ASSERT_TRUE(findings[0].effect);
  EXPECT_NEAR(findings[0].effect->value, -30e6, 0.2e6);
  EXPECT_NEAR(findings[0].weight, 30e6, 0.2e6);
  const int64_t since_ns = *findings[0].since_ns - analysis::testing::at_ms(100 + 4 * 40);
  EXPECT_LE(since_ns, 500'000) << "the last operation before the first step, on the reference's clock";
  EXPECT_GE(since_ns, -20'500'000) << "which is known to that step there";
  ASSERT_EQ(findings[0].evidence.size(), 9u);
  EXPECT_EQ(findings[0].evidence[8], "2 more");
  EXPECT_NE(findings[0].evidence[0].find(": by 20.0 ms +- "), std::string::npos) << findings[0].evidence[0];
}

}  // namespace
}  // namespace lockstep::job::clock
