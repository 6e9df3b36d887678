// SPDX-License-Identifier: Apache-2.0
// Kernels of RCCL on AMD's GPUs and the operations that they must be given, or must not.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "job/assemble/assemble.h"
#include "model/event_kind.h"

namespace lockstep::job::assemble {
namespace {

using model::EventKind;
using model::kNoRow;
using model::number;

constexpr uint64_t kKey = 0xabc0, kOtherKey = 0xdef0;

// One process with RCCL's calls and kernels. Counts of elements name the operations.
struct AmdJob {
  model::Trace trace;
  int64_t now = 1'000'000;
  std::multimap<uint64_t, int64_t> truth;  // count to begin of its kernel

  explicit AmdJob(uint32_t comms = 1) {
    model::Process process{};
    process.gpu_clock = static_cast<uint8_t>(model::GpuClock::kAmdTicks);
    trace.processes.append(process);
    for (uint32_t i = 0; i < comms; ++i) {
      model::Comm comm{};
      comm.comm_id = i + 1;
      trace.comms.append(comm);
    }
    for (uint32_t i = 0; i < 2; ++i) {
      model::Thread thread{};
      thread.tid = 100 + i;
      thread.pthread = 0x7000 + i;
      trace.threads.append(thread);
    }
  }
  int64_t tick() { return now += 100; }
  uint32_t shape() {
    return trace.intern_shape(
        {trace.strings.intern("AllReduce"), trace.strings.intern("ncclFloat32"), 0, 0, 0});
  }
  uint32_t call(EventKind kind, uint32_t comm, bool captured, uint32_t parent = kNoRow, uint64_t count = 0) {
    model::Call call{};
    call.comm = comm;
    call.kind = number(kind);
    call.flags = captured ? model::kFlagGraphCaptured : 0;
    call.parent = parent;
    call.shape = count != 0 ? shape() : kNoRow;
    call.count = count;
    call.start_ns = tick();
    call.end_ns = call.start_ns + 50;
    return trace.calls.append(call);
  }
  void task(uint32_t comm, uint32_t call, uint32_t plan, uint64_t count, uint8_t channels = 4) {
    model::Task task{};
    task.comm = comm;
    task.kind = number(EventKind::kColl);
    task.call = call;
    task.plan = plan;
    task.shape = shape();
    task.count = count;
    task.channels = channels;
    task.peer = -1;
    task.start_ns = tick();
    trace.tasks.append(task);
  }
  // Thread 1 is one of HIP's own.
  void kernel(uint64_t key, uint64_t count, uint32_t thread = 0, uint32_t blocks = 4, bool is_timed = true) {
    model::Launch launch{};
    launch.thread = thread;
    launch.kind = static_cast<uint8_t>(model::LaunchKind::kKernel);
    launch.caller = 0x7000 + thread;
    launch.start_ns = launch.end_ns = tick();
    launch.device_comm = key;
    const uint32_t row = trace.launches.append(launch);
    if (!is_timed) return;
    model::Kernel kernel{};
    kernel.op = kNoRow;
    kernel.name = trace.strings.intern("ncclDevKernel_Generic_1");
    kernel.kind = static_cast<uint8_t>(model::KernelKind::kCommunication);
    kernel.start_ns = tick();
    kernel.end_ns = tick();
    kernel.launch = row;
    kernel.blocks = blocks;
    trace.kernels.append(kernel);
    truth.emplace(count, kernel.start_ns);
  }
  // As API 5 and later report it; on `thread` comes the kernel.
  void operation(uint64_t count, uint64_t key = kKey, uint32_t thread = 0, uint32_t comm = 0) {
    const uint32_t group = call(EventKind::kGroupApi, comm, false);
    const uint32_t api = call(EventKind::kCollApi, comm, false, group, count);
    const uint32_t launch = call(EventKind::kKernelLaunch, comm, false, group);
    if (thread == 0) {
      kernel(key, count);
      trace.calls.end_ns[launch] = tick();
    }
    task(comm, api, call(EventKind::kGroup, comm, false), count);
    if (thread != 0) kernel(key, count, thread);
    trace.calls.end_ns[group] = tick();
  }
  // As API 1 to 4 do: a plan on its launch's thread, and nothing else.
  void plan(uint64_t count, uint64_t key = kKey) {
    kernel(key, count);
    task(0, kNoRow, call(EventKind::kGroup, 0, false), count);
  }
  void capture(uint64_t count, uint8_t channels = 4, uint32_t comm = 0) {
    const uint32_t group = call(EventKind::kGroupApi, comm, true);
    const uint32_t api = call(EventKind::kCollApi, comm, true, group, count);
    call(EventKind::kKernelLaunch, comm, true, group);
    task(comm, api, call(EventKind::kGroup, comm, true), count, channels);
    trace.calls.end_ns[group] = tick();
  }
  void lose(std::string_view stage, std::string_view kind) { trace.lose(0, stage, kind, 1, "test"); }

  // Assembles. How many operations have times; each time must be of a kernel of that operation.
  size_t joined() {
    EXPECT_TRUE(assemble(trace));
    size_t count = 0;
    for (size_t op = 0; op < trace.ops.size(); ++op) {
      const int64_t start = trace.ops.gpu_start_ns[op];
      if (start == 0) continue;
      const auto [first, end] = truth.equal_range(trace.ops.count[op]);
      const bool is_right = std::any_of(first, end, [&](const auto& of) { return of.second == start; });
      EXPECT_TRUE(is_right) << "operation of " << trace.ops.count[op] << " elements";
      EXPECT_GT(trace.ops.launched_ns[op], 0);
      ++count;
    }
    return count;
  }
  uint64_t loss(std::string_view kind) const {
    uint64_t count = 0;
    for (size_t i = 0; i < trace.losses.size(); ++i)
      count += trace.strings[trace.losses.kind[i]] == kind ? trace.losses.count[i] : 0;
    return count;
  }
};

TEST(DeviceComms, AKernelFromAnotherThreadIsItsCommunicatorsNext) {
  AmdJob job(2);
  job.operation(1);
  job.operation(2, kKey, 1);
  job.operation(3, kOtherKey, 0, 1);
  job.operation(4, kOtherKey, 1, 1);
  job.operation(5, kKey, 1);
  EXPECT_EQ(job.joined(), 5u);
  EXPECT_EQ(job.loss("kernel_joined_by_comm"), 3u);
  EXPECT_EQ(job.loss("kernel_launched_outside"), 0u);
}

TEST(DeviceComms, TheOnlyAddressIsTheOnlyCommunicators) {
  AmdJob job;
  for (uint64_t count = 1; count <= 3; ++count) job.operation(count, kKey, 1);
  EXPECT_EQ(job.joined(), 3u);
  AmdJob two(2);
  two.operation(1, kKey, 1, 0);
  two.operation(2, kKey, 1, 1);
  EXPECT_EQ(two.joined(), 0u) << "whose address it is cannot be known";
  EXPECT_EQ(two.loss("kernel_launched_outside"), 2u);
}

TEST(DeviceComms, OneWithoutTimesKeepsItsPlace) {
  AmdJob job;
  job.operation(1);
  for (uint64_t count = 2; count <= 3; ++count) job.call(EventKind::kKernelLaunch, 0, false);
  job.kernel(kKey, 2, 1, 4, false);
  job.kernel(kKey, 3, 1);
  job.operation(4, kKey, 1);
  EXPECT_EQ(job.joined(), 2u) << "the third's launch has no operation";
}

TEST(DeviceComms, AnAddressOfTwoCommunicatorsJoinsNothing) {
  AmdJob job(2);
  job.operation(1, kKey, 0, 0);
  job.operation(2, kKey, 0, 1);
  job.operation(3, kKey, 1, 0);
  job.operation(4, kOtherKey, 0, 1);
  EXPECT_EQ(job.joined(), 3u) << "by thread and time as ever";
  EXPECT_EQ(job.loss("kernel_launched_outside"), 1u);
}

TEST(DeviceComms, NumbersThatDifferJoinNothing) {
  AmdJob job;
  job.operation(1);
  job.operation(2, kKey, 1);
  job.kernel(kKey, 99, 1);
  EXPECT_EQ(job.joined(), 1u);
  AmdJob early;
  early.operation(1);
  early.kernel(kKey, 99, 1);
  early.call(EventKind::kKernelLaunch, 0, false);
  EXPECT_EQ(early.joined(), 1u) << "no kernel comes before its launch";
}

TEST(DeviceComms, OrderIsNothingWhereRecordsAreMissing) {
  const auto job_of = [] {
    AmdJob job;
    job.operation(1);
    job.operation(2, kKey, 1);
    return job;
  };
  EXPECT_EQ(job_of().joined(), 2u);
  AmdJob lost = job_of();
  lost.lose("capture", "no_chunk");
  EXPECT_EQ(lost.joined(), 1u);
  AmdJob open = job_of();
  open.lose("read", "open_gpu_work");
  EXPECT_EQ(open.joined(), 2u) << "it is there, and has no end";
  AmdJob unread = job_of();
  unread.kernel(model::kUnreadDeviceComm, 99);
  EXPECT_EQ(unread.joined(), 1u);
  AmdJob sampled = job_of();
  sampled.trace.processes.modes[0] = sampled.trace.strings.intern("sample=1/2 1700000000000000000");
  EXPECT_EQ(sampled.joined(), 1u);
  AmdJob partly = job_of();
  partly.trace.processes.window[0] = 1;
  EXPECT_EQ(partly.joined(), 1u);
}

TEST(DeviceComms, PlansOfApisWithoutLaunches) {
  AmdJob job;
  for (uint64_t count = 1; count <= 4; ++count) job.plan(count);
  EXPECT_EQ(job.joined(), 4u);
  AmdJob unread;
  for (uint64_t count = 1; count <= 4; ++count) unread.plan(count, model::kUnreadDeviceComm);
  EXPECT_EQ(unread.joined(), 4u) << "the thread says it";
  AmdJob two;
  two.plan(1);
  two.kernel(kKey, 99);
  two.plan(2);
  EXPECT_EQ(two.joined(), 1u) << "which of two is not known";
}

TEST(DeviceComms, PlansOfACallbackThreadByTheirOrder) {
  AmdJob job;
  job.plan(1);
  for (uint64_t count = 2; count <= 3; ++count) {
    job.kernel(kKey, count, 1);
    job.trace.calls.thread[job.call(EventKind::kGroup, 0, false)] = 1;
    job.trace.threads.pthread[1] = 0;
    job.task(0, kNoRow, static_cast<uint32_t>(job.trace.calls.size() - 1), count);
  }
  // The kernel's end is behind the plan's begin.
  for (size_t i = 1; i < 3; ++i) job.trace.kernels.end_ns[i] += 10'000;
  EXPECT_EQ(job.joined(), 3u);
}

// Alike operations can be told apart by their place, and need not be.
TEST(DeviceComms, EachReplayOfAGraphIsItsOperations) {
  AmdJob job;
  job.operation(7);
  for (int i = 0; i < 3; ++i) job.capture(5);
  for (int i = 0; i < 12; ++i) job.kernel(kKey, 5);
  EXPECT_EQ(job.joined(), 13u);
  EXPECT_EQ(job.loss("graph_kernel"), 0u);
  EXPECT_EQ(job.loss("kernel_launched_outside"), 0u);
  size_t numbered = 0;
  for (const uint32_t index : job.trace.ops.all(&model::OpTable::index)) numbered += index != model::kNoIndex;
  EXPECT_EQ(numbered, 4u) << "one each for what was called and what was captured";
}

TEST(DeviceComms, OperationsOfAGraphThatDifferDoSoInTheirChannels) {
  const auto job_of = [](std::initializer_list<uint8_t> channels) {
    AmdJob job;
    job.operation(7);
    uint64_t count = 10;
    for (const uint8_t of : channels) job.capture(count++, of);
    for (int replay = 0; replay < 3; ++replay) {
      count = 10;
      for (const uint8_t of : channels) job.kernel(kKey, count++, 0, of);
    }
    return job;
  };
  EXPECT_EQ(job_of({2, 4, 8}).joined(), 10u);
  AmdJob equal = job_of({2, 4, 4});
  EXPECT_EQ(equal.joined(), 1u) << "the two could be parts of several graphs";
  EXPECT_EQ(equal.loss("graph_kernel"), 9u);
  AmdJob other = job_of({2, 4, 8});
  other.trace.kernels.blocks[5] = 8;
  EXPECT_EQ(other.joined(), 1u) << "the order is not the capture's";
}

TEST(DeviceComms, OperationsOfSeveralGraphsAreKnownByChannelsOfTheirOwn) {
  const auto job_of = [](uint8_t other) {
    AmdJob job;
    job.operation(7);
    job.capture(10, 2);
    job.capture(11, 4);
    job.operation(8);
    job.capture(12, other);
    // The second graph twice, the first, the second.
    for (int i = 0; i < 2; ++i) job.kernel(kKey, 12, 0, other);
    job.kernel(kKey, 10, 0, 2);
    job.kernel(kKey, 11, 0, 4);
    job.kernel(kKey, 12, 0, other);
    return job;
  };
  AmdJob job = job_of(8);
  EXPECT_EQ(job.joined(), 7u);
  EXPECT_EQ(job.loss("graph_kernel"), 0u);
  AmdJob equal = job_of(4);
  EXPECT_EQ(equal.joined(), 2u) << "a kernel of four blocks may be of either graph";
  EXPECT_EQ(equal.loss("graph_kernel"), 5u);
  AmdJob other = job_of(8);
  other.trace.kernels.blocks[4] = 4;  // of the first graph's first
  EXPECT_EQ(other.joined(), 2u) << "the order is not the capture's";
  AmdJob cut = job_of(8);
  cut.kernel(kKey, 10, 0, 2);
  EXPECT_EQ(cut.joined(), 2u) << "the last replay is cut";
}

TEST(DeviceComms, ReplaysThatCannotBeToldApartAreCounted) {
  AmdJob two_graphs;
  two_graphs.operation(7);
  two_graphs.capture(5);
  two_graphs.operation(8);
  two_graphs.capture(5);
  for (int i = 0; i < 4; ++i) two_graphs.kernel(kKey, 5);
  EXPECT_EQ(two_graphs.joined(), 2u);
  EXPECT_EQ(two_graphs.loss("graph_kernel"), 4u);
  AmdJob cut;
  cut.operation(7);
  for (int i = 0; i < 2; ++i) cut.capture(5);
  for (int i = 0; i < 3; ++i) cut.kernel(kKey, 5);
  EXPECT_EQ(cut.joined(), 1u) << "not a whole number of replays";
  AmdJob unknown;
  unknown.capture(5);
  unknown.kernel(kOtherKey, 99);
  unknown.kernel(kKey, 5);
  EXPECT_EQ(unknown.joined(), 0u) << "neither address is known to be the communicator's";
}

// Threads, communicators and kernels that are not recorded, at random: joined() checks each operation.
TEST(DeviceComms, WhateverTheMixNoneGetsAnothersKernel) {
  size_t all = 0, joined = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    const bool is_missing_some = seed % 2 != 0;
    AmdJob job(2);
    for (uint64_t count = 1; count <= 40; ++count) {
      const uint32_t comm = below(2), thread = below(3) == 0;
      job.operation(count, comm == 0 || seed % 7 == 0 ? kKey : kOtherKey, thread, comm);
      if (!is_missing_some || below(8) != 0) continue;
      job.trace.kernels.launch[job.trace.kernels.size() - 1] = kNoRow;
      job.trace.launches.device_comm[job.trace.launches.size() - 1] = 0;
    }
    const uint32_t captured = below(4);
    for (uint32_t i = 0; i < captured; ++i) job.capture(50);
    for (uint32_t i = 0; i < 3 * captured; ++i) job.kernel(kKey, 50);
    all += 40 + 3 * captured;
    joined += job.joined();
  }
  EXPECT_GT(joined, all * 3 / 4);
}

}  // namespace
}  // namespace lockstep::job::assemble
