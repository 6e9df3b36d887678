// SPDX-License-Identifier: Apache-2.0
// What becomes of each record, and of records that are not as they should be.
#include "capture/cuda/records.h"

#include "capture/cuda/cuda_test.h"

#include "capture/core/log/interning.h"

namespace lockstep::test {
namespace {

using format::Kind;

class Records : public CudaCapture {};

TEST_F(Records, AKernelAndItsLaunch) {
  uint32_t thread = 0;
  LksFile file = record([](const Gpu& gpu) {
    const uint32_t correlation = gpu.launch({.name = "ncclDevKernel_AllReduce",
                                             .stream = 21,
                                             .device = 3,
                                             .driver_call = cupti::kLaunchKernelEx,
                                             .channels = 24});
    const uint64_t start = gpu.now();
    sleep_ms(2);
    gpu.finish(correlation, start, gpu.now());
    gpu.run({.name = "elementwise", .driver_call = cupti::kLaunchKernel});
    gpu.run({.name = "replayed", .driver_call = cupti::kGraphLaunch, .graph = 5, .node = 0x500000007});
  });
  thread = static_cast<uint32_t>(pthread_self());  // the child's main thread is a copy of this one
  const auto kernels = file.all<format::KernelRecord>(Kind::kKernel);
  const auto calls = file.all<format::LaunchCallRecord>(Kind::kLaunchCall);
  ASSERT_EQ(kernels.size(), 3u);
  ASSERT_EQ(calls.size(), 2u) << "cuLaunchKernel is no call of NCCL's";
  const auto& nccl = kernels[0];
  EXPECT_EQ(nccl.stream, 21u);
  EXPECT_EQ(nccl.device, 3u);
  EXPECT_EQ(nccl.context, 1u);
  EXPECT_EQ(nccl.blocks, 24u);
  EXPECT_EQ(nccl.correlation, calls[0].correlation);
  EXPECT_EQ(calls[0].call, format::LaunchCall::kKernel);
  EXPECT_EQ(calls[0].thread, thread);
  EXPECT_EQ(calls[1].call, format::LaunchCall::kGraph);
  EXPECT_EQ(kernels[2].graph, 5u);
  EXPECT_EQ(kernels[2].graph_node, 0x500000007u);
  const double ns =
      static_cast<double>(nccl.head.stop_after) * 1e9 / static_cast<double>(file.header().tick_hz);
  EXPECT_GT(ns, 1.9e6);
  EXPECT_GE(nccl.head.start, calls[0].head.start);
  EXPECT_GT(nccl.head.start, file.header().first_anchor.ticks);
  const auto names = kernel_names(file);
  EXPECT_EQ(names.size(), 3u);
  const std::vector<Entry> entries = file.records(Kind::kKernel);
  EXPECT_EQ(names.at({entries[0].log, nccl.name}), "ncclDevKernel_AllReduce");
  EXPECT_EQ(file.lost(), 0u);
  EXPECT_EQ(note(file, format::kNoteGpuRecords), "kernels, CUPTI 130001");
}

TEST_F(Records, AGridOfMoreBlocksThanANumberHoldsHasTheMost) {
  LksFile file = record([](const Gpu& gpu) {
    gpu.run({.name = "small", .channels = 3, .rows = 5, .layers = 7});
    gpu.run({.name = "most", .channels = 0xffff, .rows = 0x10001});                        // 2^32 - 1
    gpu.run({.name = "beyond", .channels = 0x10000, .rows = 0x10000});                     // 2^32
    gpu.run({.name = "far", .channels = 0x7fffffff, .rows = 0x10000, .layers = 0x20000});  // 2^64 and less
  });
  std::vector<uint32_t> blocks;
  for (const auto& kernel : file.all<format::KernelRecord>(Kind::kKernel)) blocks.push_back(kernel.blocks);
  EXPECT_EQ(blocks, (std::vector<uint32_t>{105, 0xffffffff, 0xffffffff, 0xffffffff}));
}

TEST_F(Records, ANameIsWrittenOnceAndCutWhereItIsTooLong) {
  const std::string endless(5000, 'x');
  LksFile file = record([&](const Gpu& gpu) {
    for (int i = 0; i < 100; ++i) {
      gpu.run({.name = i % 2 == 0 ? "even" : "odd"});
      const std::string copy = endless;  // another address
      gpu.run({.name = copy.c_str()});
      cuptiActivityFlushAll(0);
    }
  });
  EXPECT_EQ(file.count(Kind::kKernel), 200u);
  std::vector<std::string> names;
  for (const auto& [key, name] : kernel_names(file)) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{"even", "odd", endless.substr(0, format::kMaxKernelNameBytes - 1)}));
  EXPECT_LE(file.count(format::Def::kKernelName), 3u * file.logs());
}

TEST_F(Records, AKernelOfSecondsKeepsItsEnd) {
  LksFile file = record([](const Gpu& gpu) {
    const uint32_t correlation = gpu.launch({.name = "spinning"});
    const uint64_t end = gpu.now();
    gpu.finish(correlation, end - 60'000'000'000, end);
  });
  const auto kernel = file.one<format::KernelRecord>(Kind::kKernel);
  EXPECT_EQ(kernel.head.stop_after, format::kSaturated);
  const auto stop = file.one<format::StateRecord>(Kind::kState);
  EXPECT_EQ(stop.head.link, format::kStateStop);
  EXPECT_EQ(stop.target, file.records(Kind::kKernel)[0].handle());
  const double seconds =
      static_cast<double>(stop.head.start - kernel.head.start) / static_cast<double>(file.header().tick_hz);
  EXPECT_NEAR(seconds, 60, 1);
}

TEST_F(Records, CopiesOnlyWhereAskedFor) {
  auto body = [](const Gpu& gpu) {
    for (const uint32_t kind : {cupti::kCopy, cupti::kPeerCopy, cupti::kSet}) gpu.copy(kind, 100 + kind);
  };
  LksFile file = record(body, settings("default", "copies"));
  const auto copies = file.all<format::CopyRecord>(Kind::kCopy);
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies[0].copy, format::CopyKind::kCopy);
  EXPECT_EQ(copies[0].bytes, 101u);
  EXPECT_EQ(copies[0].from, 2u);
  EXPECT_EQ(copies[0].to, 3u);
  EXPECT_EQ(copies[1].copy, format::CopyKind::kPeerCopy);
  EXPECT_NE(copies[1].correlation, 0u);
  EXPECT_EQ(copies[2].copy, format::CopyKind::kSet);
  EXPECT_EQ(copies[2].to, 3u);
  EXPECT_EQ(copies[2].stream, 9u);
  RunDirectory other;
  Environment plain = settings();
  plain[0].second = other.path();
  EXPECT_TRUE(run_child(plain, [&] {
                Gpu gpu;
                InitializeInjection();
                body(gpu);
              }).ok());
  EXPECT_EQ(other.file().count(Kind::kCopy), 0u);
}

TEST_F(Records, ThoseWithoutATimeAreCounted) {
  LksFile file = record([](const Gpu& gpu) {
    gpu.launch({.name = "never done"});
    gpu.finish(gpu.launch({.name = "long ago"}), 5, 6);
    gpu.run({.name = "good"});
    cuptiActivityFlushAll(cupti::kFlushForced);
  });
  EXPECT_EQ(file.count(Kind::kKernel), 1u);
  EXPECT_EQ(file.lost(capture::kLoss_gpu_unknown), 2u);
}

TEST_F(Records, AnOldReleaseHasNoGraphsAndNoLaunchCalls) {
  LksFile file = record(
      [](const Gpu& gpu) {
        gpu.run({.name = "ncclKernel_AllReduce", .driver_call = cupti::kLaunchKernel, .graph = 5, .node = 9});
      },
      settings(), "old");
  const auto kernel = file.one<format::KernelRecord>(Kind::kKernel);
  EXPECT_EQ(kernel.graph, 0u);
  EXPECT_EQ(kernel.graph_node, 0u);
  EXPECT_EQ(file.count(Kind::kLaunchCall), 0u);
  EXPECT_EQ(file.lost(), 0u);
}

TEST(Record, NothingIsReadPastItsEnd) {
  uint8_t bytes[8] = {3, 0, 0, 0, 7, 0, 0, 0};
  const cupti::Record record(bytes, 6);
  EXPECT_EQ(record.kind(), 3u);
  EXPECT_EQ(record.get<uint32_t>(4), 0u);
  EXPECT_EQ(record.get<uint16_t>(4), 7u);
  EXPECT_EQ(record.get<uint64_t>(144), 0u);
}

// A program that compiles its kernels as it goes: their names stay for as long as the process lives.
TEST_F(Records, NamesOfKernelsLeaveTheRingToRecords) {
  constexpr uint64_t kRing = 1 << 20, kKernels = 20'000;
  Environment environment = settings();
  environment.emplace_back("LOCKSTEP_RETAIN", "ring:1M");
  std::vector<std::string> names;
  for (uint64_t i = 0; i < kKernels; ++i)
    names.push_back("fused_kernel_" + std::to_string(i) + std::string(60, 'x'));
  const LksFile file = record(
      [&](const Gpu& gpu) {
        for (const std::string& name : names) gpu.run({.name = name.c_str()});
      },
      environment);
  uint64_t bytes = 0;
  for (const Entry& entry : file.definitions(format::Def::kKernelName))
    bytes += entry.def().units * format::kUnitBytes;
  EXPECT_LE(bytes, kRing / capture::Interning::kNamesOfRing);
  EXPECT_GT(bytes, kRing / capture::Interning::kNamesOfRing / 2);
  const uint64_t kept = file.count(Kind::kKernel);
  EXPECT_GT(kept * sizeof(format::KernelRecord), kRing / 4);
  EXPECT_EQ(kept + file.lost(capture::kLoss_overwritten), kKernels);
  EXPECT_EQ(file.count(format::Def::kKernelName) + file.lost(capture::kLoss_shape_table_full), kKernels);
}

}  // namespace
}  // namespace lockstep::test
