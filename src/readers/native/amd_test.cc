// SPDX-License-Identifier: Apache-2.0
// What AMD's runtime delivered: kernels submitted and done, clocks of GPUs, counters, and what never ended.
#include "job/assemble/assemble.h"
#include "model/hsa_counters.h"
#include "readers/native/test_run.h"

namespace lockstep::readers::native {
namespace {

using format::Def;

constexpr uint64_t kTicksAtHost0 = 5'000'000;  // of the GPU, at 100 MHz, when the host's clock read 0

uint64_t gpu(uint64_t host) { return kTicksAtHost0 + host / 10; }

// A file of the HSA library with one GPU, whose clock is known at a few instants.
struct AmdFile {
  FileBuilder file;
  explicit AmdFile(const char* pci = "0000:c1:00.0", int32_t place = -1) {
    file.header().source = format::Source::kHsa;
    file.header().gpu_clock = format::GpuClock::kAmdTicks;
    agent(0, pci, place);
    for (const uint64_t host : {1'000'000u, 2'000'000u, 3'000'000u}) clock(0, host);
    file.kernel_symbol(1, "Cijk_Ailk");
    file.kernel_symbol(2, "_Z17rcclGenericKernelILi1ELb0EEv24ncclDevKernelArgsStorageILm4096EE");
  }
  void agent(uint32_t number, const char* pci, int32_t place) {
    format::GpuAgentDef agent{};
    agent.tick_hz = 100'000'000;
    agent.place = place;
    std::strncpy(agent.pci, pci, sizeof agent.pci - 1);
    std::snprintf(agent.uuid, sizeof agent.uuid, "GPU-%s", pci);
    file.define(Def::kGpuAgent, number, agent);
  }
  // The runtime's system clock runs 7 s ahead of the host's.
  void clock(uint32_t number, uint64_t host, uint64_t off_ns = 0) {
    constexpr uint64_t kAhead = 7'000'000'000;
    format::GpuClockDef clock{};
    clock.ticks = gpu(host);
    clock.system = host + kAhead + off_ns;
    clock.system_now = host + 500 + kAhead;
    clock.system_hz = 1'000'000'000;
    clock.width_ns = 40;
    file.define(Def::kGpuClock, number, clock, host + 500);
  }
};

format::DispatchRecord dispatch(uint64_t start, uint32_t symbol, uint64_t arguments = 0) {
  format::DispatchRecord record{};
  record.head = head(start);
  record.arguments = arguments;
  record.symbol = symbol;
  record.sequence = 1;
  record.queue = 3;
  record.grid[0] = 1000;
  record.group[0] = 256;
  record.group_bytes = 64;
  return record;
}
format::GpuTimesRecord times(uint64_t seen, uint64_t target, uint64_t start, uint64_t stop) {
  return {head(seen), target, gpu(start), gpu(stop), format::TimesClock::kAgent, format::TimesProblem::kNone,
          0};
}

TEST(Amd, KernelsAreRowsInHostTime) {
  AmdFile amd;
  FileBuilder::Log &launcher = amd.file.log(100, "python"), &collector = amd.file.log(200, "lockstep-hsa");
  const uint64_t first = launcher.add(Kind::kDispatch, dispatch(1'500'000, 1));
  const uint64_t second = launcher.add(Kind::kDispatch, dispatch(1'500'100, 2, 0xabc0));
  collector.add(Kind::kGpuTimes, times(1'700'000, first, 1'510'000, 1'600'000));
  collector.add(Kind::kGpuTimes, times(1'800'000, second, 1'600'000, 1'650'000));
  model::Trace trace = load_one(amd.file);
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "Cijk_Ailk");
  EXPECT_EQ(trace.kernels.start_ns[0], at(1'510'000));
  EXPECT_EQ(trace.kernels.end_ns[0], at(1'600'000));
  EXPECT_EQ(trace.kernels.stream[0], 3u);
  EXPECT_EQ(trace.kernels.blocks[0], 4u);
  EXPECT_EQ(trace.kernels.launch[0], model::kNoRow);
  EXPECT_EQ(trace.kernels.kind[1], static_cast<uint8_t>(model::KernelKind::kCommunication));
  ASSERT_EQ(trace.launches.size(), 1u) << "of communication alone";
  EXPECT_EQ(trace.kernels.launch[1], 0u);
  EXPECT_EQ(trace.launches.start_ns[0], at(1'500'100));
  EXPECT_EQ(trace.threads.tid[trace.launches.thread[0]], 100);
  EXPECT_EQ(trace.kernels.gpu[0], trace.processes.gpu[0]);
  EXPECT_EQ(trace.strings[trace.processes.pci[0]], "0000:c1:00.0");
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

uint64_t counter(const model::Trace& trace, std::string_view label) {
  for (const model::StringId mark : trace.marks.all(&model::MarkTable::name)) {
    for (const auto& [name, count] : model::hsa_counters_of(trace.strings[mark]))
      if (name == label) return count;
  }
  return UINT64_MAX;
}

TEST(Amd, AClockThatStepsIsAnErrorThatIsStated) {
  for (const uint64_t step : {0u, 800u}) {
    AmdFile amd;
    amd.clock(0, 2'500'000, step);
    amd.file.define(Def::kHsaCounters, 0, format::HsaCountersDef{});
    const uint64_t error = counter(load_one(amd.file), model::kClockErrorCounter);
    EXPECT_GE(error, step + 20);
    EXPECT_LE(error, step + 30);
  }
}

TEST(Amd, WhatNeverEndedIsNamed) {
  AmdFile amd;
  FileBuilder::Log& log = amd.file.log(100);
  log.add(Kind::kDispatch, dispatch(1'500'000, 2, 0xabc0));
  format::DispatchRecord untimed = dispatch(1'500'100, 1);
  untimed.head.flags = format::kFlagUntimed | format::kFlagStopped;
  untimed.head.stop_after = 1;
  untimed.untimed = format::Untimed::kObserved;
  log.add(Kind::kDispatch, untimed);
  untimed.untimed = format::Untimed::kNoSignal;
  log.add(Kind::kDispatch, untimed);
  const uint64_t bad = log.add(Kind::kDispatch, dispatch(1'500'200, 1));
  format::GpuTimesRecord unstamped = times(1'600'000, bad, 0, 0);
  unstamped.problem = format::TimesProblem::kNotStamped;
  log.add(Kind::kGpuTimes, unstamped);
  model::Trace trace = load_one(amd.file);
  EXPECT_EQ(trace.kernels.size(), 0u);
  EXPECT_EQ(loss(trace, "open_gpu_work"), 1u);
  EXPECT_NE(losses_text(trace).find("not seen to end: void rcclGenericKernel<1, false>"), std::string::npos)
      << losses_text(trace);
  EXPECT_EQ(loss(trace, "no_gpu_times"), 3u);
  EXPECT_NE(losses_text(trace).find("gave no times, 1 as all signals of their queue were on their way: "),
            std::string::npos)
      << losses_text(trace);
}

TEST(Amd, TimesOfWhatIsNotThereAreCounted) {
  AmdFile amd;
  FileBuilder::Log& log = amd.file.log(100);
  log.add(Kind::kGpuTimes, times(1'600'000, format::make_handle(28, 1, 4096), 1'510'000, 1'600'000));
  format::DispatchRecord elsewhere = dispatch(1'500'000, 9);
  elsewhere.agent = 77;
  const uint64_t lost = log.add(Kind::kDispatch, elsewhere);
  log.add(Kind::kGpuTimes, times(1'600'000, lost, 1'510'000, 1'600'000));
  model::Trace trace = load_one(amd.file);
  EXPECT_EQ(loss(trace, "unresolved_times"), 1u);
  EXPECT_EQ(loss(trace, "gpu_clock"), 1u) << losses_text(trace);
  EXPECT_EQ(loss(trace, "unknown_kernel_name"), 1u);
  EXPECT_EQ(trace.kernels.size(), 0u);
}

TEST(Amd, CountersAndQueuesThatAreNotSeen) {
  AmdFile amd;
  format::HsaCountersDef early{}, late{};
  early.counts[0] = 5;
  late.counts[0] = 3380;
  late.counts[9] = 2630;
  amd.file.define(Def::kHsaCounters, 0, early);
  amd.file.define(Def::kHsaCounters, 0, late);
  format::GpuQueueDef plain{}, observed{};
  plain.state = format::QueueState::kPlain;
  observed.state = format::QueueState::kObserved;
  amd.file.define(Def::kGpuQueue, 1, plain);
  amd.file.define(Def::kGpuQueue, 2, observed);
  model::Trace trace = load_one(amd.file);
  EXPECT_EQ(counter(trace, "intercept calls"), 3380u) << "the newest";
  EXPECT_EQ(counter(trace, "recorded OK"), 2630u);
  EXPECT_EQ(loss(trace, "queue_not_seen"), 1u);
  EXPECT_EQ(loss(trace, "queue_observed"), 1u);
}

TEST(Amd, CopiesBySystemTime) {
  AmdFile amd;
  FileBuilder::Log& log = amd.file.log(100);
  const uint64_t copy =
      log.add(Kind::kQueuedCopy, format::QueuedCopyRecord{head(1'500'000), 4096, format::kHostAgent, 0, 0});
  format::GpuTimesRecord done = times(1'600'000, copy, 0, 0);
  done.clock = format::TimesClock::kSystem;
  done.gpu_start = 7'001'510'000;
  done.gpu_stop = 7'001'520'000;
  log.add(Kind::kGpuTimes, done);
  model::Trace trace = load_one(amd.file);
  ASSERT_EQ(trace.kernels.size(), 1u);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "Copy HostToDevice");
  EXPECT_EQ(trace.kernels.start_ns[0], at(1'510'000));
  EXPECT_EQ(trace.kernels.end_ns[0], at(1'520'000));
  EXPECT_EQ(trace.kernels.bytes[0], 4096u);
}

TEST(Amd, CopiesWithoutTimesAreCounted) {
  AmdFile amd;
  amd.file.log(100).add(Kind::kQueuedCopy,
                        format::QueuedCopyRecord{head(1'500'000), 4096, format::kHostAgent, 0, 0});
  model::Trace trace = load_one(amd.file);
  EXPECT_EQ(trace.kernels.size(), 0u);
  EXPECT_EQ(loss(trace, "no_gpu_times"), 1u) << losses_text(trace);
}

// Each process sees one GPU, as its first: the numbers stay apart, by the host's own count.
TEST(Amd, GpusStayApartWhereEachRankSeesOne) {
  const std::string dir = test_dir();
  std::vector<std::string> paths;
  for (int rank = 0; rank < 2; ++rank) {
    AmdFile amd(rank == 0 ? "0000:c1:00.0" : "0000:85:00.0", rank == 0 ? 5 : 2);
    amd.file.header().pid = 100 + rank;
    amd.file.header().rank = amd.file.header().local_rank = rank;
    FileBuilder::Log& log = amd.file.log(100);
    const uint64_t one = log.add(Kind::kDispatch, dispatch(1'500'000, 1));
    log.add(Kind::kGpuTimes, times(1'700'000, one, 1'510'000, 1'600'000));
    paths.push_back(dir + "/" + std::to_string(rank) + ".lks");
    ASSERT_TRUE(amd.file.write(paths.back()));
  }
  auto source = open(paths);
  ASSERT_TRUE(source);
  std::vector<int32_t> gpus;
  for (size_t i = 0; i < 2; ++i) {
    model::Trace trace;
    ASSERT_TRUE((*source)->load(i, trace));
    ASSERT_EQ(trace.kernels.size(), 1u);
    gpus.push_back(trace.kernels.gpu[0]);
    EXPECT_EQ(trace.kernels.gpu[0], trace.processes.gpu[0]);
  }
  EXPECT_EQ(gpus, (std::vector<int32_t>{5, 2}));
}

// RCCL's plugin and ours in one process: a kernel that was put into its queue within KernelLaunch is that
// operation's.
TEST(Amd, KernelsJoinRcclsOperations) {
  const std::string dir = test_dir();
  FileBuilder nccl;
  nccl.header().gpu_clock = format::GpuClock::kAmdTicks;
  FileBuilder::Log &caller = nccl.log(100, "python", 0x7f00'1234'5678), &progress = nccl.log(101);
  const uint32_t comm = nccl.comm(0xc0, 0, 2);
  add_allreduce(caller, progress, comm, 1'500'000, 0);
  AmdFile amd;
  FileBuilder::Log& launcher = amd.file.log(100, "python", 0x7f00'1234'5678);
  const uint64_t kernel = launcher.add(Kind::kDispatch, dispatch(1'500'350, 2, 0xabc0));
  launcher.add(Kind::kGpuTimes, times(1'700'000, kernel, 1'510'000, 1'600'000));
  ASSERT_TRUE(nccl.write(dir + "/a.nccl.lks"));
  ASSERT_TRUE(amd.file.write(dir + "/a.hsa.lks"));
  auto source = open({dir + "/a.nccl.lks", dir + "/a.hsa.lks"});
  ASSERT_TRUE(source);
  model::Trace trace;
  ASSERT_TRUE((*source)->load(0, trace));
  ASSERT_TRUE(job::assemble::assemble(trace));
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(trace.ops.gpu_source[0], static_cast<uint8_t>(model::GpuTimeSource::kHsa));
  EXPECT_EQ(trace.ops.gpu_start_ns[0], at(1'510'000));
  EXPECT_EQ(trace.ops.gpu_end_ns[0], at(1'600'000));
  EXPECT_EQ(trace.kernels.op[0], 0u);
}

}  // namespace
}  // namespace lockstep::readers::native
