// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/process_counters.h"

#include <gtest/gtest.h>

#include "model/event_kind.h"

namespace lockstep::exporters::common {

namespace {

using model::GpuTimeSource;
using Values = std::vector<CounterValue>;

// A process of a communicator of four ranks, or of several, whose GPU times are those of CUPTI.
class ProcessCountersTest : public ::testing::Test {
 protected:
  ProcessCountersTest() {
    model::Process process{};
    process.modes = trace.strings.intern("default 1700000000000000000");
    trace.processes.append(process);
    add_comm(4);
  }
  uint32_t add_comm(int32_t ranks) {
    model::Comm comm{};
    comm.ranks = ranks;
    return trace.comms.append(comm);
  }
  // Called by its API call, and an all-reduce, unless the test changes that. No end: 0.
  uint32_t add(int64_t called, int64_t gpu_start, int64_t gpu_end, uint64_t bytes = 0) {
    model::Call call{};
    call.start_ns = called;
    call.end_ns = called + 10;
    model::Op op{};
    op.shape = shape("AllReduce");
    op.bytes = bytes;
    op.peer = -1;
    op.task = model::kNoRow;
    op.call = called != 0 ? trace.calls.append(call) : model::kNoRow;
    op.called_ns = called;
    op.gpu_start_ns = gpu_start;
    op.gpu_end_ns = gpu_end;
    op.gpu_source = gpu_end != 0 ? static_cast<uint8_t>(GpuTimeSource::kCupti) : 0;
    return trace.ops.append(op);
  }
  uint32_t shape(std::string_view func) {
    model::Shape shape{};
    shape.func = trace.strings.intern(func);
    return trace.intern_shape(shape);
  }
  // Of the counter, empty where there is none.
  Values values(std::string_view name) {
    const ProcessCounters made(trace);
    for (const Counter& counter : made.counters()) {
      if (counter.name == name) return counter.values;
    }
    return {};
  }
  Values in_flight() { return values("operations in flight"); }
  Values bandwidth() { return values("bus bandwidth"); }
  uint64_t losses(std::string_view kind) {
    model::Trace run;
    ProcessCounters(trace).report_losses(run);
    uint64_t count = 0;
    for (size_t i = 0; i < run.losses.size(); ++i)
      count += run.strings[run.losses.kind[i]] == kind ? run.losses.count[i] : 0;
    return count;
  }
  model::Trace trace;
};

TEST_F(ProcessCountersTest, OverlappingOperationsAddUp) {
  add(1000, 2000, 4000, 4000);  // x 2 (4 - 1) / 4 in 2 us
  add(1500, 3000, 5000, 8000);
  EXPECT_EQ(in_flight(), (Values{{1000, 1}, {1500, 2}, {4000, 1}, {5000, 0}}));
  EXPECT_EQ(bandwidth(), (Values{{2000, 3000}, {3000, 9000}, {4000, 6000}, {5000, 0}}));
  EXPECT_EQ(losses("without_end"), 0u);
}

TEST_F(ProcessCountersTest, OperationsApartLeaveNothingBetween) {
  add(7000, 8000, 9000, 2000);
  add(1000, 2000, 3000, 2000);  // rows need not be in order
  EXPECT_EQ(in_flight(), (Values{{1000, 1}, {3000, 0}, {7000, 1}, {9000, 0}}));
  EXPECT_EQ(bandwidth(), (Values{{2000, 3000}, {3000, 0}, {8000, 3000}, {9000, 0}}));
}

TEST_F(ProcessCountersTest, WhatDoesNotChangeIsNotSaidAgain) {
  add(1000, 2000, 3000, 2000);
  add(3000, 3000, 4000, 2000);
  EXPECT_EQ(in_flight(), (Values{{1000, 1}, {4000, 0}}));
  EXPECT_EQ(bandwidth(), (Values{{2000, 3000}, {4000, 0}}));
}

TEST_F(ProcessCountersTest, SeveralChangesOfOneInstantAreOneValue) {
  add(1000, 2000, 5000);
  add(1000, 2000, 5000);
  add(1000, 2000, 6000);
  EXPECT_EQ(in_flight(), (Values{{1000, 3}, {5000, 1}, {6000, 0}}));
  EXPECT_EQ(bandwidth(), Values{}) << "of no bytes";
}

TEST_F(ProcessCountersTest, AnOpenOperationStaysInFlight) {
  add(1000, 2000, 3000, 2000);
  add(4000, 0, 0, 2000);
  add(4500, 5000, 0, 2000);
  EXPECT_EQ(in_flight(), (Values{{1000, 1}, {3000, 0}, {4000, 1}, {4500, 2}}));
  EXPECT_EQ(bandwidth(), (Values{{2000, 3000}, {3000, 0}}));
  EXPECT_EQ(losses("without_end"), 0u);
}

TEST_F(ProcessCountersTest, WhereEndsAreMissingOpenOnesCannotBeToldFromOthers) {
  add(1000, 2000, 3000);
  add(4000, 0, 0);
  add(5000, 6000, 7000);
  add(8000, 0, 0);
  EXPECT_EQ(in_flight(), (Values{{1000, 1}, {3000, 0}, {5000, 1}, {7000, 0}}));
  EXPECT_EQ(losses("without_end"), 2u);
}

TEST_F(ProcessCountersTest, CommunicatorsAreJudgedApart) {
  const uint32_t other = add_comm(2), silent = add_comm(2);
  add(1000, 2000, 3000);
  add(4000, 0, 0);
  trace.ops.comm[add(4100, 0, 0)] = other;
  trace.ops.comm[add(4200, 4300, 4400)] = other;
  trace.ops.comm[add(4500, 0, 0)] = silent;
  EXPECT_EQ(in_flight(), (Values{{1000, 1}, {3000, 0}, {4000, 1}, {4200, 2}, {4400, 1}}));
  EXPECT_EQ(losses("without_end"), 2u);
}

TEST_F(ProcessCountersTest, KernelChTellsNothingOnceTheModeChanged) {
  trace.ops.gpu_source[add(1000, 2000, 3000)] = static_cast<uint8_t>(GpuTimeSource::kKernelCh);
  add(4000, 0, 0);
  const Values closed = {{1000, 1}, {3000, 0}}, open = {{1000, 1}, {3000, 0}, {4000, 1}};
  for (const auto& [modes, expected] : {std::pair{"deep 17", open},
                                        {"deep 17, default 18", closed},
                                        {"sample=1/100 17", closed},
                                        {"", open}}) {
    trace.processes.modes[0] = trace.strings.intern(modes);
    EXPECT_EQ(in_flight(), expected) << modes;
  }
}

TEST_F(ProcessCountersTest, AnEndThatIsOnlyBoundedIsUnknown) {
  add(1000, 2000, 3000);
  add(4000, 0, 5000);  // was over by then
  EXPECT_EQ(in_flight(), (Values{{1000, 1}, {3000, 0}}));
  EXPECT_EQ(losses("without_end"), 1u);
}

TEST_F(ProcessCountersTest, WithoutAKnownEndNothingIsSaid) {
  EXPECT_TRUE(ProcessCounters(trace).counters().empty()) << "no operations";
  add(1000, 0, 0, 4000);
  add(2000, 2500, 0, 4000);
  trace.ops.gpu_source[add(3000, 3500, 4000, 4000)] = static_cast<uint8_t>(GpuTimeSource::kInspector);
  EXPECT_TRUE(ProcessCounters(trace).counters().empty());
  EXPECT_EQ(losses("without_end"), 0u) << "there is no counter to mistrust";
}

TEST_F(ProcessCountersTest, AReplayIsInFlightSinceItWasEnqueued) {
  for (const uint32_t op : {add(1000, 5000, 6000), add(1000, 8000, 9000), add(1000, 0, 0)})
    trace.ops.flags[op] = model::kFlagGraphCaptured;
  trace.ops.enqueued_ns[1] = 7000;
  EXPECT_EQ(in_flight(), (Values{{5000, 1}, {6000, 0}, {7000, 1}, {9000, 0}}));
  EXPECT_EQ(losses("without_end"), 0u) << "the last one was captured and never ran";
}

TEST_F(ProcessCountersTest, WithoutACallTheGpuWorkBeginsIt) {
  add(0, 2000, 3000);
  add(5000, 4000, 4500);  // ends before its call: clocks are apart
  EXPECT_EQ(in_flight(), (Values{{2000, 1}, {3000, 0}}));
}

TEST_F(ProcessCountersTest, BusBandwidthIsThatOfTheFunction) {
  trace.ops.shape[add(1000, 2000, 3000, 1000)] = shape("AllGather");  // a quarter of the whole, x 3/4
  const uint32_t send = add(3500, 4000, 5000, 1000);
  trace.ops.shape[send] = shape("Send");
  trace.ops.peer[send] = 1;
  trace.ops.shape[add(5500, 6000, 7000, 1000)] = shape("Broadcast");
  EXPECT_EQ(bandwidth(), (Values{{2000, 3000}, {3000, 0}, {4000, 1000}, {5000, 0}, {6000, 1000}, {7000, 0}}));
}

TEST_F(ProcessCountersTest, BusBandwidthIsExactAtTodaysTimes) {
  constexpr int64_t kToday = 1'760'000'000'000'000'000;
  add(kToday + 1, kToday + 2, kToday + 103, 101'000);
  EXPECT_EQ(bandwidth(), (Values{{kToday + 2, 1'500'000}, {kToday + 103, 0}}));
}

TEST_F(ProcessCountersTest, BusBandwidthIsLeftOutWhereItIsNotKnown) {
  trace.ops.comm[add(1000, 2000, 3000, 4000)] = add_comm(-1);
  trace.ops.comm[add(1000, 2000, 3000, 4000)] = 99;
  trace.ops.shape[add(1000, 2000, 3000, 4000)] = 99;
  add(1000, 2000, 2000, 4000);
  add(1000, 2000, 3000, uint64_t{1} << 62);
  add(1000, 2000, 1'000'002'000, 8);  // rounds to nothing
  EXPECT_EQ(bandwidth(), Values{});
  EXPECT_EQ(losses("implausible_rate"), 1u);
  EXPECT_EQ(in_flight().front(), (CounterValue{1000, 6}));
}

TEST_F(ProcessCountersTest, EachSaysItsUnit) {
  add(1000, 2000, 3000, 2000);
  const ProcessCounters made(trace);
  ASSERT_EQ(made.counters().size(), 2u);
  EXPECT_EQ(made.counters()[0].unit, "count");
  EXPECT_FALSE(made.counters()[0].in_thousandths);
  EXPECT_EQ(made.counters()[1].unit, "GB/s");
  EXPECT_TRUE(made.counters()[1].in_thousandths);
}

}  // namespace
}  // namespace lockstep::exporters::common
