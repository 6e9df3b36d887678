// SPDX-License-Identifier: Apache-2.0
#include "job/assemble/assemble.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/event_kind.h"
#include "model/testing/values.h"

namespace lockstep::job::assemble {
namespace {

using model::EventKind;
using model::kNoRow;
using model::number;
using model::OpTable;
using model::Trace;
using model::testing::values;

constexpr int64_t kHost = 1'700'000'000'000'000'000;

// A trace under construction; times are ns after kHost.
struct Fixture {
  Trace trace;
  explicit Fixture(model::GpuClock clock = model::GpuClock::kNvidiaNs) {
    model::Process process{};
    process.gpu_clock = static_cast<uint8_t>(clock);
    trace.processes.append(process);
  }
  uint32_t comm(uint64_t id, int32_t rank = 0, int32_t device = -1) {
    model::Comm comm{};
    comm.comm_id = id;
    comm.rank = rank;
    comm.device = device;
    comm.gpu = device;
    return trace.comms.append(comm);
  }
  uint32_t shape(const char* func, const char* datatype, const char* algo = "", int32_t root = 0) {
    return trace.intern_shape(
        {trace.strings.intern(func), trace.strings.intern(datatype), trace.strings.intern(algo), 0, root});
  }
  uint32_t call(EventKind kind, uint32_t comm, int64_t start, uint32_t thread = 0, uint32_t shape = kNoRow,
                uint64_t count = 0, uint8_t flags = 0, uint32_t parent = kNoRow) {
    model::Call call{};
    call.thread = thread;
    call.comm = comm;
    call.kind = number(kind);
    call.flags = flags;
    call.parent = parent;
    call.shape = shape;
    call.count = count;
    call.start_ns = kHost + start;
    call.end_ns = kHost + start + 10;
    return trace.calls.append(call);
  }
  uint32_t task(EventKind kind, uint32_t comm, int64_t start, uint32_t shape, uint64_t count,
                uint32_t call = kNoRow, uint32_t plan = kNoRow, uint32_t thread = 0) {
    model::Task task{};
    task.thread = thread;
    task.comm = comm;
    task.kind = number(kind);
    task.call = call;
    task.plan = plan;
    task.shape = shape;
    task.count = count;
    task.peer = -1;
    task.channels = 2;
    task.start_ns = kHost + start;
    return trace.tasks.append(task);
  }
  // Both channels of a task; GPU times are host times plus `offset`.
  void kernel(uint32_t task, int64_t start, int64_t stop, int64_t seen, int64_t offset) {
    for (uint16_t channel = 0; channel < 2; ++channel) {
      model::Channel c{};
      c.comm = trace.tasks.comm[task];
      c.task = task;
      c.kind = number(EventKind::kKernelCh);
      c.channel = channel;
      c.gpu_start = static_cast<uint64_t>(kHost + start + offset + channel);
      c.gpu_stop = stop == 0 ? 0 : static_cast<uint64_t>(kHost + stop + offset - 1 + channel);
      c.stop_seen_ns = stop == 0 ? 0 : kHost + seen;
      trace.channels.append(c);
    }
  }
  // An eager collective, complete.
  uint32_t collective(uint32_t comm, int64_t start, int64_t offset, uint32_t thread = 0) {
    uint32_t s = shape("AllReduce", "ncclFloat32", "RING");
    uint32_t group = call(EventKind::kGroupApi, comm, start, thread);
    uint32_t api = call(EventKind::kCollApi, comm, start + 100, thread, s, 1000, 0, group);
    call(EventKind::kKernelLaunch, comm, start + 1'000, thread, kNoRow, 0, 0, group);
    uint32_t plan = call(EventKind::kGroup, comm, start + 3'000, thread);
    uint32_t t = task(EventKind::kColl, comm, start + 3'100, s, 1000, api, plan, thread);
    kernel(t, start + 5'000, start + 25'000, start + 29'000, offset);
    return t;
  }
  void run() {
    auto done = assemble(trace);
    ASSERT_TRUE(done) << done.error().message();
  }
  uint64_t loss(std::string_view kind) const {
    uint64_t count = 0;
    for (size_t i = 0; i < trace.losses.size(); ++i)
      count += trace.strings[trace.losses.kind[i]] == kind ? trace.losses.count[i] : 0;
    return count;
  }
};

TEST(Assemble, JoinsCallTaskLaunchAndGpu) {
  Fixture s;
  uint32_t comm = s.comm(1);
  s.collective(comm, 10'000, 640'000);
  s.run();
  ASSERT_EQ(s.trace.ops.size(), 1u);
  model::Op op = s.trace.ops.row(0);
  EXPECT_EQ(op.kind, number(EventKind::kColl));
  EXPECT_EQ(op.called_ns, kHost + 10'100);
  EXPECT_EQ(op.launched_ns, kHost + 11'000);
  EXPECT_EQ(op.enqueued_ns, kHost + 13'100);
  EXPECT_EQ(op.bytes, 4000u);
  EXPECT_EQ(op.call, 1u);
  EXPECT_EQ(op.group, 0u);
  EXPECT_EQ(op.gpu_source, static_cast<uint8_t>(model::GpuTimeSource::kKernelCh));
  // Bounds: 4 us before the start, 4 us behind the end.
  EXPECT_NEAR(static_cast<double>(op.gpu_end_ns - op.gpu_start_ns), 20'000,
              10);  // the drift is free within 200 ppm
  EXPECT_LE(std::abs(op.gpu_start_ns - (kHost + 15'000)), op.gpu_error_ns);
  EXPECT_NEAR(op.gpu_error_ns, 4'000, 20);
  EXPECT_EQ(s.trace.losses.size(), 0u);
  EXPECT_FALSE(assemble(s.trace)) << "twice";
}

TEST(Assemble, CountsAreTheUsersWhereNcclReportsBytes) {
  Fixture s;
  uint32_t comm = s.comm(1);
  uint32_t user = s.shape("AllGather", "ncclBfloat16"), nccl = s.shape("AllGather", "ncclInt8", "RING");
  uint32_t api = s.call(EventKind::kCollApi, comm, 0, 0, user, 128);
  s.task(EventKind::kColl, comm, 10, nccl, 256, api);
  s.task(EventKind::kColl, comm, 20, nccl, 256);  // v1..v4: no call
  s.run();
  EXPECT_EQ(s.trace.ops.count[0], 128u);
  EXPECT_EQ(s.trace.ops.bytes[0], 256u);
  EXPECT_EQ(s.trace.strings[s.trace.shapes.datatype[s.trace.ops.shape[0]]], "ncclBfloat16");
  EXPECT_EQ(s.trace.strings[s.trace.shapes.algo[s.trace.ops.shape[0]]], "RING");
  EXPECT_EQ(s.trace.ops.count[1], 256u);
  EXPECT_EQ(s.trace.ops.bytes[1], 256u);
}

TEST(Assemble, IndexFollowsCallsPerCommAndKind) {
  Fixture s;
  uint32_t a = s.comm(1), b = s.comm(2);
  uint32_t shape = s.shape("AllReduce", "ncclFloat32");
  uint32_t first = s.call(EventKind::kCollApi, a, 100, 0, shape, 1);
  uint32_t second = s.call(EventKind::kCollApi, a, 200, 0, shape, 2);
  uint32_t send = s.call(EventKind::kP2pApi, a, 250, 0, shape, 3);
  uint32_t other = s.call(EventKind::kCollApi, b, 50, 0, shape, 4);
  s.task(EventKind::kColl, a, 1'000, shape, 2, second);  // a plan is sorted by size, not by call
  s.task(EventKind::kColl, a, 1'010, shape, 1, first);
  s.task(EventKind::kP2p, a, 1'020, shape, 3, send);
  s.task(EventKind::kColl, b, 1'030, shape, 4, other);
  s.task(EventKind::kCeColl, a, 2'000, shape, 5);
  s.run();
  EXPECT_EQ(values(s.trace.ops, &OpTable::count), (std::vector<uint64_t>{4, 1, 2, 3, 5}));
  EXPECT_EQ(values(s.trace.ops, &OpTable::index), (std::vector<uint32_t>{0, 0, 1, 0, 2}));
  EXPECT_EQ(s.trace.ops.seq[3], model::kNoSeq);
  EXPECT_EQ(s.trace.ops.seq[4], model::kNoSeq) << "what NCCL numbers there is not the function's operations";
}

TEST(Assemble, CallsWithoutATaskAreOperations) {
  Fixture s;
  uint32_t comm = s.comm(1);
  uint32_t shape = s.shape("Broadcast", "ncclInt32");
  s.call(EventKind::kCollApi, comm, 100, 3, shape, 16);
  s.call(EventKind::kP2pApi, comm, 200, 3, shape, 8);
  s.run();
  ASSERT_EQ(s.trace.ops.size(), 2u);
  EXPECT_EQ(s.trace.ops.kind[0], number(EventKind::kCollApi));
  EXPECT_EQ(s.trace.ops.kind[1], number(EventKind::kP2pApi));
  EXPECT_EQ(values(s.trace.ops, &OpTable::index), (std::vector<uint32_t>{0, 0}));
  EXPECT_EQ(s.trace.ops.bytes[0], 64u);
  EXPECT_EQ(s.trace.ops.enqueued_ns[0], 0);
  EXPECT_EQ(s.trace.ops.task[0], kNoRow);
  EXPECT_EQ(s.trace.ops.thread[0], 3u);
}

TEST(Assemble, EachReplayOfAGraphIsAnOperation) {
  Fixture s;
  uint32_t comm = s.comm(1);
  uint32_t shape = s.shape("AllReduce", "ncclFloat32");
  uint32_t captured = s.call(EventKind::kCollApi, comm, 100, 0, shape, 16, model::kFlagGraphCaptured);
  s.call(EventKind::kKernelLaunch, comm, 150);  // records the graph; launches nothing
  uint32_t eager = s.call(EventKind::kCollApi, comm, 15'000, 0, shape, 99);
  uint32_t tasks[3];
  for (int i = 0; i < 3; ++i) {
    int64_t start = 10'000 * (i + 1);
    uint32_t plan = s.call(EventKind::kGroup, comm, start, 7);  // a CUDA callback thread
    tasks[i] = s.task(EventKind::kColl, comm, start + 10, shape, 16, captured, plan, 7);
    s.kernel(tasks[i], start + 1'000, start + 2'000, start + 2'500, 1'000'000);
  }
  s.task(EventKind::kColl, comm, 15'100, shape, 99, eager);
  s.run();
  ASSERT_EQ(s.trace.ops.size(), 4u);
  EXPECT_EQ(values(s.trace.ops, &OpTable::count), (std::vector<uint64_t>{16, 99, 16, 16}));
  EXPECT_EQ(values(s.trace.ops, &OpTable::index), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(s.trace.ops.flags[0], model::kFlagGraphCaptured);
  EXPECT_EQ(s.trace.ops.flags[1], 0);
  EXPECT_EQ(s.trace.ops.call[3], captured);
  EXPECT_EQ(s.trace.ops.launched_ns[0], 0);
  EXPECT_LE(s.trace.ops.gpu_error_ns[0],
            1'000);  // the callback bounds the kernel: 990 ns before, 500 ns behind
}

TEST(Assemble, ALaunchBelongsToOnePlanOfItsThreadAndComm) {
  Fixture s;
  uint32_t a = s.comm(1), b = s.comm(2);
  uint32_t shape = s.shape("AllReduce", "ncclFloat32");
  uint32_t thread0 = 0, thread1 = 1;
  s.call(EventKind::kKernelLaunch, a, 100, thread0);
  s.call(EventKind::kKernelLaunch, a, 110, thread1);
  s.call(EventKind::kKernelLaunch, b, 120, thread0);
  uint32_t plans[] = {s.call(EventKind::kGroup, a, 200, thread0), s.call(EventKind::kGroup, b, 210, thread0),
                      s.call(EventKind::kGroup, a, 220, thread1), s.call(EventKind::kGroup, a, 230, thread0)};
  for (uint32_t i = 0; i < 4; ++i)
    s.task(EventKind::kColl, i == 1 ? b : a, 300 + i, shape, 1, kNoRow, plans[i]);
  s.run();
  EXPECT_EQ(values(s.trace.ops, &OpTable::launched_ns),
            (std::vector<int64_t>{kHost + 100, kHost + 120, kHost + 110, 0}));
}

TEST(Assemble, OneProcessWithSeveralRanksHasSeveralClocks) {
  Fixture s;
  uint32_t rank0 = s.comm(1, 0), rank1 = s.comm(1, 1);  // one process, two GPUs, devices unknown
  for (int i = 0; i < 50; ++i) {
    s.collective(rank0, 100'000 * i, 300'000, 0);
    s.collective(rank1, 100'000 * i + 50'000, 900'000, 1);
  }
  s.run();
  EXPECT_EQ(s.loss("gpu_clock_contradiction"), 0u);
  for (size_t i = 0; i < s.trace.ops.size(); ++i) EXPECT_LE(s.trace.ops.gpu_error_ns[i], 5'000);
}

TEST(Assemble, ContradictingBoundsAreCounted) {
  Fixture s;
  uint32_t comm = s.comm(1, 0, 0);
  s.collective(comm, 0, 300'000);
  s.collective(comm, 100'000, 900'000);  // the clock cannot have moved by 600 us in between
  s.run();
  EXPECT_GT(s.loss("gpu_clock_contradiction") + s.loss("gpu_stamps_stale"), 0u);
}

TEST(Assemble, WhatCannotBeConvertedStaysUnknownAndIsCounted) {
  Fixture amd(model::GpuClock::kAmdTicks);
  amd.collective(amd.comm(1), 0, 5);
  amd.run();
  EXPECT_GT(amd.loss("gpu_rate_unknown"), 0u);
  EXPECT_EQ(amd.trace.ops.gpu_start_ns[0], 0);
  EXPECT_EQ(amd.trace.ops.gpu_source[0], 0);

  Fixture open;  // hung: a kernel that never ended, after one that did
  uint32_t comm = open.comm(1);
  open.collective(comm, 0, 640'000);
  uint32_t shape = open.shape("AllReduce", "ncclFloat32");
  uint32_t hung = open.task(EventKind::kColl, comm, 100'000, shape, 1);
  open.kernel(hung, 110'000, 0, 0, 640'000);
  open.run();
  EXPECT_NE(open.trace.ops.gpu_start_ns[1], 0);
  EXPECT_EQ(open.trace.ops.gpu_end_ns[1], 0);

  Fixture unbounded;
  unbounded.kernel(unbounded.task(EventKind::kColl, unbounded.comm(1), 10, shape, 1), 20, 0, 0, 0);
  unbounded.shape("AllReduce", "ncclFloat32");
  unbounded.trace.intern_shape({});
  unbounded.run();
  EXPECT_EQ(unbounded.loss("gpu_clock_unbounded"), 1u);
}

TEST(Assemble, DeclaredOperationsKeepTheirOwnTimes) {
  Fixture s;
  uint32_t comm = s.comm(1);
  uint32_t t = s.task(EventKind::kApiOp, comm, 100, s.shape("my_all_reduce", "Half"), 10);
  s.trace.tasks.flags[t] = model::kFlagGpuTimes;
  s.trace.tasks.gpu_start_ns[t] = 777;
  s.trace.tasks.gpu_end_ns[t] = 888;
  uint32_t send = s.task(EventKind::kApiOp, comm, 200, s.shape("send", "Half"), 10);
  s.trace.tasks.peer[send] = 3;
  s.run();
  EXPECT_EQ(s.trace.ops.gpu_start_ns[0], 777);
  EXPECT_EQ(s.trace.ops.gpu_end_ns[0], 888);
  EXPECT_EQ(s.trace.ops.gpu_source[0], static_cast<uint8_t>(model::GpuTimeSource::kApi));
  EXPECT_EQ(s.trace.ops.bytes[0], 20u);
  EXPECT_EQ(s.trace.ops.called_ns[0], kHost + 100);
  EXPECT_EQ(values(s.trace.ops, &OpTable::index), (std::vector<uint32_t>{0, 0}));
}

TEST(Assemble, HostileCountsAreClampedAndCounted) {
  Fixture s;
  s.task(EventKind::kColl, kNoRow, 10, s.shape("AllReduce", "ncclFloat64"), UINT64_MAX / 2);
  s.run();
  EXPECT_EQ(s.trace.ops.bytes[0], UINT64_MAX);
  EXPECT_EQ(s.loss("clamped_bytes"), 1u);
}

}  // namespace
}  // namespace lockstep::job::assemble
