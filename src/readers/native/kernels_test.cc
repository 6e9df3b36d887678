// SPDX-License-Identifier: Apache-2.0
// What the GPU driver's tools interface delivered: kernels, copies, the calls that launched them, and their
// names.
#include <numeric>

#include "readers/native/test_run.h"

namespace lockstep::readers::native {
namespace {

using model::kNoRow;

constexpr const char* kNccl =
    "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE";

format::KernelRecord kernel(uint64_t start, uint32_t length, uint32_t name, uint32_t correlation,
                            uint16_t device = 0) {
  return {head(start, length), name, correlation, 7, device, 1, 0, 0, 24};
}
format::LaunchCallRecord launch(uint64_t start, uint32_t length, uint32_t correlation, uint32_t thread) {
  return {head(start, length), correlation, thread, format::LaunchCall::kKernel, 0, 0};
}

TEST(Kernels, AreRowsWithTheirNamesAndLaunches) {
  FileBuilder file;
  file.header().source = format::Source::kCuda;
  FileBuilder::Log& log = file.log(100, "cupti", 0x7f00'1234'5678);
  uint32_t gemm = log.kernel_name("sm80_gemm"), nccl = log.kernel_name(kNccl);
  log.add(Kind::kKernel, kernel(9000, 500, nccl, 12));  // delivered before what came before it
  log.add(Kind::kKernel, kernel(8000, 100, gemm, 11));
  log.add(Kind::kLaunchCall, launch(8900, 20, 12, 0x1234'5678));
  log.add(Kind::kLaunchCall, launch(7900, 20, 10, 0x99));
  format::CopyRecord copy{head(9900, 10), 4096, 13, 8, 0, 1, format::CopyKind::kCopy, 3, 2, 0};
  log.add(Kind::kCopy, copy);
  copy.copy = format::CopyKind::kSet;
  log.add(Kind::kCopy, copy);
  model::Trace trace = load_one(file);
  ASSERT_EQ(trace.kernels.size(), 4u);
  ASSERT_EQ(trace.launches.size(), 2u);
  auto name = [&](size_t row) { return trace.strings[trace.kernels.name[row]]; };
  auto kind = [&](size_t row) { return static_cast<model::KernelKind>(trace.kernels.kind[row]); };
  EXPECT_EQ(name(0), "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(kind(0), model::KernelKind::kCommunication);
  EXPECT_EQ(trace.kernels.start_ns[0], at(9000));
  EXPECT_EQ(trace.kernels.end_ns[0], at(9500));
  EXPECT_EQ(trace.kernels.blocks[0], 24u);
  EXPECT_EQ(trace.kernels.launch[0], 0u);
  EXPECT_EQ(trace.launches.start_ns[0], at(8900));
  EXPECT_EQ(trace.launches.end_ns[0], at(8920));
  EXPECT_EQ(trace.threads.tid[trace.launches.thread[0]], 100);
  EXPECT_EQ(name(1), "sm80_gemm");
  EXPECT_EQ(kind(1), model::KernelKind::kCompute);
  EXPECT_EQ(trace.kernels.launch[1], kNoRow);
  EXPECT_EQ(trace.launches.thread[1], kNoRow) << "a thread that did not use NCCL";
  EXPECT_EQ(name(2), "Memcpy DtoH (Device -> Pinned)");
  EXPECT_EQ(kind(2), model::KernelKind::kCopy);
  EXPECT_EQ(trace.kernels.bytes[2], 4096u);
  EXPECT_EQ(name(3), "Memset (Pinned)");
  EXPECT_EQ(trace.kernels.gpu[0], trace.processes.gpu[0]);
  EXPECT_EQ(trace.processes.first_ns[0], at(7900));
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

TEST(Kernels, OfOneProcessInTwoFiles) {
  const std::string dir = test_dir();
  FileBuilder nccl, cuda;
  format::CommDef comm{};
  comm.comm_id = 5;
  comm.ranks = 2;
  comm.device = 3;
  std::memcpy(comm.pci, "0000:aa:00.0", 12);
  nccl.comm(comm);
  FileBuilder::Log& caller = nccl.log(100, "python", 0x7f00'0000'0001);
  caller.add(Kind::kKernelLaunch, format::KernelLaunchRecord{head(1000, 100), 0, 0, 0, 0});
  caller.thread(101, "later", 0x7f00'0000'0001, 50'000);
  caller.add(Kind::kKernelLaunch, format::KernelLaunchRecord{head(51'000, 100), 0, 0, 0, 0});
  cuda.header().source = format::Source::kCuda;
  FileBuilder::Log& log = cuda.log(200, "cupti");
  uint32_t name = log.kernel_name(kNccl);
  log.add(Kind::kKernel, kernel(2000, 10, name, 1, 3));
  log.add(Kind::kKernel, kernel(2000, 10, name, 2, 0));
  log.add(Kind::kLaunchCall, launch(1010, 10, 1, 1));
  log.add(Kind::kLaunchCall, launch(51'010, 10, 2, 1));
  ASSERT_TRUE(nccl.write(dir + "/a.nccl.lks"));
  ASSERT_TRUE(cuda.write(dir + "/a.cuda.lks"));
  for (const auto& paths : {std::vector{dir + "/a.nccl.lks", dir + "/a.cuda.lks"},
                            std::vector{dir + "/a.cuda.lks", dir + "/a.nccl.lks"}}) {
    auto source = open(paths);
    ASSERT_TRUE(source) << source.error().message();
    ASSERT_EQ((*source)->processes(), 1u);
    model::Trace trace;
    ASSERT_TRUE((*source)->load(0, trace));
    EXPECT_EQ(trace.calls.size(), 2u);
    ASSERT_EQ(trace.kernels.size(), 2u);
    EXPECT_EQ(trace.kernels.gpu[0], trace.comms.gpu[0]);
    EXPECT_NE(trace.kernels.gpu[1], trace.comms.gpu[0]) << "a device that no communicator names";
    EXPECT_EQ(trace.threads.tid[trace.launches.thread[0]], 100);
    EXPECT_EQ(trace.threads.tid[trace.launches.thread[1]], 101) << "pthread_self() is used again";
    EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
  }
}

// Where another tool asked for it, CUPTI names threads by the kernel's number.
TEST(Kernels, CallersAreNamedByTheKernelsNumberToo) {
  const std::string dir = test_dir();
  FileBuilder nccl, cuda;
  FileBuilder::Log& caller = nccl.log(100, "python", 0x7f00'1234'5678);
  caller.add(Kind::kKernelLaunch, format::KernelLaunchRecord{head(1000, 100), 0, 0, 0, 0});
  caller.thread(100, "later", 0x7f00'0000'9999, 50'000);
  caller.add(Kind::kKernelLaunch, format::KernelLaunchRecord{head(51'000, 100), 0, 0, 0, 0});
  // Its tid is the low half of another's pthread_self().
  FileBuilder::Log& other = nccl.log(0x1234'5678, "other", 0x7f00'0000'0001);
  other.add(Kind::kKernelLaunch, format::KernelLaunchRecord{head(1500, 100), 0, 0, 0, 0});
  cuda.header().source = format::Source::kCuda;
  FileBuilder::Log& log = cuda.log(200, "cupti");
  const auto by_tid = [&](uint64_t start, uint32_t correlation, uint32_t tid) {
    format::LaunchCallRecord record = launch(start, 10, correlation, tid);
    record.head.flags |= format::kFlagSystemThread;
    log.add(Kind::kLaunchCall, record);
  };
  by_tid(1010, 1, 100);
  by_tid(1510, 2, 0x1234'5678);
  by_tid(51'010, 3, 100);
  by_tid(1020, 4, 77);
  log.add(Kind::kLaunchCall, launch(1030, 10, 5, 0x1234'5678));
  ASSERT_TRUE(nccl.write(dir + "/a.nccl.lks"));
  ASSERT_TRUE(cuda.write(dir + "/a.cuda.lks"));
  for (const auto& paths : {std::vector{dir + "/a.nccl.lks", dir + "/a.cuda.lks"},
                            std::vector{dir + "/a.cuda.lks", dir + "/a.nccl.lks"}}) {
    auto source = open(paths);
    ASSERT_TRUE(source) << source.error().message();
    model::Trace trace;
    ASSERT_TRUE((*source)->load(0, trace));
    ASSERT_EQ(trace.launches.size(), 5u);
    const auto name = [&](size_t row) {
      const uint32_t thread = trace.launches.thread[row];
      return thread == kNoRow ? "none" : std::string(trace.strings[trace.threads.name[thread]]);
    };
    EXPECT_EQ(trace.launches.caller[0], 0x1234'5678u);
    EXPECT_EQ(name(0), "python");
    EXPECT_EQ(trace.launches.caller[1], 1u);
    EXPECT_EQ(name(1), "other");
    EXPECT_EQ(trace.launches.caller[2], 0x9999u);
    EXPECT_EQ(name(2), "later") << "the number is given again";
    EXPECT_EQ(trace.launches.caller[3], 0u) << "a thread that did not use NCCL";
    EXPECT_EQ(trace.launches.thread[3], kNoRow);
    EXPECT_EQ(trace.launches.caller[4], 0x1234'5678u);
    EXPECT_EQ(name(4), "python");
  }
}

TEST(Kernels, EndsThatDidNotFitComeApart) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100);
  uint32_t name = log.kernel_name(kNccl);
  auto stop = [&](uint64_t handle, uint64_t when) {
    format::StateRecord record{head(when), handle, 0};
    record.head.link = format::kStateStop;
    log.add(Kind::kState, record);
  };
  stop(log.add(Kind::kKernel, kernel(9000, format::kSaturated, name, 1)), 9'000'000'000);
  stop(log.add(Kind::kLaunchCall, launch(8000, format::kSaturated, 1, 0)), 8'000'000'000);
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.kernels.end_ns[0], at(9'000'000'000));
  EXPECT_EQ(trace.launches.end_ns[0], at(8'000'000'000));
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

TEST(Kernels, DamagedNamesAndRecordsAreCounted) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100);
  uint32_t name = log.kernel_name(std::string(3000, 'x'));
  log.add(Kind::kKernel, kernel(1000, 10, name, 1));
  log.add(Kind::kKernel, kernel(1000, 10, 4'000'000'000, 1));
  format::KernelRecord open = kernel(2000, 0, name, 2);
  log.add(Kind::kKernel, open);
  log.add(Kind::kLaunchCall, launch(900, 10, 1, 0));
  log.add(Kind::kLaunchCall, launch(950, 10, 1, 0));
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]].size(), 1023u);
  EXPECT_EQ(trace.kernels.name[1], 0u);
  EXPECT_EQ(trace.kernels.end_ns[2], trace.kernels.start_ns[2]);
  EXPECT_EQ(trace.kernels.launch[0], kNoRow);
  EXPECT_EQ(loss(trace, "unknown_kernel_name"), 1u);
  EXPECT_EQ(loss(trace, "open_gpu_work"), 1u);
  EXPECT_EQ(loss(trace, "repeated_correlation"), 2u);
}

// Symbols may stand for names of any length; what a kernel does is reported for all of them.
TEST(Kernels, OfManyLongNamesTheLastAreShort) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100);
  std::string long_symbol = "_Z1f900" + std::string(900, 'x');
  for (int i = 0; i < 20; ++i) long_symbol += "S_";
  const uint32_t before = log.kernel_name(kNccl);
  for (int i = 0; i < 1'000; ++i) log.kernel_name(long_symbol);
  const uint32_t after = log.kernel_name(kNccl), plain = log.kernel_name("gemm");
  for (const uint32_t name : {before, after, plain}) log.add(Kind::kKernel, kernel(1000, 10, name, 1));
  model::Trace trace = load_one(file);
  ASSERT_EQ(trace.kernels.size(), 3u);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]],
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(trace.strings[trace.kernels.name[1]], "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  EXPECT_EQ(trace.strings[trace.kernels.name[2]], "gemm");
  for (size_t row : {0, 1})
    EXPECT_EQ(static_cast<model::KernelKind>(trace.kernels.kind[row]), model::KernelKind::kCommunication);
  const uint64_t shortened = loss(trace, "short_kernel_name");
  EXPECT_GE(shortened, 2u);
  EXPECT_LT(shortened, 300u);
}

// A number that jumps must not make room for all before it.
TEST(Kernels, NumbersOfNamesAreBounded) {
  FileBuilder file;
  file.unsealed();
  FileBuilder::Log& log = file.log(100);
  uint32_t name = log.kernel_name("gemm");
  log.add(Kind::kKernel, kernel(1000, 10, name, 1));
  std::vector<std::byte> bytes = file.bytes();
  const char wanted[] = "gemm";
  auto found = std::search(bytes.begin(), bytes.end(), reinterpret_cast<const std::byte*>(wanted),
                           reinterpret_cast<const std::byte*>(wanted) + 4);
  ASSERT_NE(found, bytes.end());
  const uint32_t number = 0xfffffff0;
  std::memcpy(&*found - sizeof(format::DefHead) + offsetof(format::DefHead, id), &number, sizeof number);
  const std::string path = test_dir() + "/bad.lks";
  write_bytes(path, bytes);
  model::Trace trace = load_one(path);
  EXPECT_EQ(trace.kernels.name[0], 0u);
  EXPECT_EQ(loss(trace, "bad_definition_number"), 1u);
  EXPECT_EQ(loss(trace, "unknown_kernel_name"), 1u);
}

}  // namespace
}  // namespace lockstep::readers::native
