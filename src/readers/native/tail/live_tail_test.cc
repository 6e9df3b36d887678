// SPDX-License-Identifier: Apache-2.0
#include "readers/native/tail/live_tail.h"

#include "readers/native/test_run.h"

namespace lockstep::readers::native {
namespace {

// A file that its process goes on writing.
class Growing {
 public:
  explicit Growing(uint32_t ring_chunks = 0) {
    if (ring_chunks > 0) {
      file.header().retention = format::Retention::kRing;
      file.ring(ring_chunks);
    }
    world = file.comm(0xabc, 3, 8, "world");
    log = &file.log(11);
  }
  void write() { file.write(path); }
  std::unique_ptr<LiveTail> open(LiveTail::Depth depth = LiveTail::Depth::kNow) {
    write();
    auto tail = LiveTail::open(path, depth);
    EXPECT_TRUE(tail) << tail.error().message();
    return tail ? std::move(*tail) : nullptr;
  }
  void refresh(LiveTail& tail) {
    write();
    auto refreshed = tail.refresh();
    EXPECT_TRUE(refreshed) << refreshed.error().message();
  }
  uint64_t coll(uint64_t start, uint64_t seq, std::string_view func = "AllReduce") {
    format::CollRecord record{};
    record.head = head(start, 50);
    record.count = 256;
    record.seq = seq;
    record.comm = world;
    uint16_t& shape = shapes[std::string(func)];
    if (shape == 0) shape = log->shape(func, "ncclFloat32");
    record.shape = shape;
    return log->add(Kind::kColl, record);
  }

  std::string path = test_dir() + "/p.lks";
  FileBuilder file;
  uint32_t world = 0;
  FileBuilder::Log* log = nullptr;
  std::map<std::string, uint16_t> shapes;
};

TEST(LiveTail, FollowsWhatIsNew) {
  Growing growing;
  growing.coll(1000, 0);
  auto tail = growing.open();
  const LiveProcess& process = tail->process();
  ASSERT_EQ(process.comms.size(), 1u);
  EXPECT_EQ(process.comms[0].name, "world");
  EXPECT_EQ(process.comms[0].rank, 3);
  EXPECT_TRUE(process.from_start);
  EXPECT_EQ(process.ops, 0) << "what was there before is no news";
  EXPECT_EQ(process.comms[0].functions.at("AllReduce").newest, 0u);
  EXPECT_EQ(process.last->started_ns, at(1000));

  growing.coll(2000, 1);
  growing.coll(3000, 0, "AllGather");
  growing.refresh(*tail);
  EXPECT_EQ(process.ops, 2);
  EXPECT_EQ(process.bytes, 2 * 256 * 4);
  EXPECT_EQ(process.last->func, "AllGather");
  EXPECT_EQ(process.comms[0].functions.at("AllReduce").newest, 1u);
  EXPECT_EQ(process.comms[0].functions.at("AllReduce").started_ns, at(2000));
  growing.refresh(*tail);
  EXPECT_EQ(process.ops, 2);
}

TEST(LiveTail, TakesNoNumberThatItsChunksCannotHold) {
  Growing growing;
  growing.file.define(format::Def::kComm, 1'000'000, format::CommDef{});
  EXPECT_EQ(growing.open()->process().comms.size(), 1u);
}

TEST(LiveTail, ACallAndItsTaskAreOneOperation) {
  Growing growing;
  auto tail = growing.open();
  FileBuilder::Log& progress = growing.file.log(12, "progress");
  add_allreduce(*growing.log, progress, growing.world, 5000);
  growing.refresh(*tail);
  EXPECT_EQ(tail->process().ops, 1);
  EXPECT_EQ(tail->process().bytes, 1024 * 4);
  EXPECT_EQ(tail->process().open, 0u);
}

TEST(LiveTail, HoldsWhatIsOpenUntilItEnds) {
  Growing growing;
  auto tail = growing.open();
  format::ApiOpRecord op{};
  op.head = head(4000);
  op.comm = growing.world;
  op.peer = -1;
  op.seq = 7;
  op.shape = growing.log->shape("my_reduce");
  growing.log->add(Kind::kApiOp, op);
  growing.refresh(*tail);
  ASSERT_TRUE(tail->process().oldest_open);
  EXPECT_EQ(tail->process().oldest_open->func, "my_reduce");
  EXPECT_EQ(tail->process().oldest_open->number, 7u);
  EXPECT_EQ(tail->process().oldest_open->started_ns, at(4000));
  growing.log->last<format::ApiOpRecord>().head.flags |= format::kFlagStopped;
  growing.refresh(*tail);
  EXPECT_EQ(tail->process().open, 0u);
  EXPECT_FALSE(tail->process().oldest_open);
}

TEST(LiveTail, GpuWorkIsNamedAfterItsOperationAndEndsFromAnotherThread) {
  Growing growing;
  FileBuilder::Log& other = growing.file.log(10, "other");
  FileBuilder::Log& progress = growing.file.log(12, "progress");
  auto tail = growing.open();
  uint64_t task = growing.coll(1000, 5);
  format::KernelChRecord kernel{head(2000), task, 100, 0, growing.world, 0};
  uint64_t handle = progress.add(Kind::kKernelCh, kernel);
  growing.refresh(*tail);
  ASSERT_TRUE(tail->process().oldest_open);
  EXPECT_EQ(tail->process().oldest_open->func, "AllReduce");
  EXPECT_EQ(tail->process().oldest_open->number, 5u);
  format::StateRecord stop{head(2500), handle, 0};
  stop.head.link = format::kStateStop;
  other.add(Kind::kState, stop);
  growing.refresh(*tail);
  EXPECT_EQ(tail->process().open, 0u);
}

// Which of them have a number, and are held against the other ranks.
TEST(LiveTail, NumbersOfDeclaredOperations) {
  Growing growing;
  auto tail = growing.open();
  const uint16_t shape = growing.log->shape("my_op");
  auto declare = [&](uint64_t start, uint64_t seq, int32_t peer, uint8_t flags) {
    format::ApiOpRecord op{};
    op.head = head(start, 10, flags);
    op.comm = growing.world;
    op.peer = peer;
    op.seq = seq;
    op.shape = shape;
    growing.log->add(Kind::kApiOp, op);
  };
  declare(1000, UINT64_MAX, -1, format::kFlagSeqKnown);  // the program's 0
  declare(2000, 5, -1, format::kFlagSeqKnown);
  declare(3000, 9, -1, format::kFlagP2p);  // a send whose peer was not said
  growing.refresh(*tail);
  EXPECT_EQ(tail->process().comms[0].functions.at("my_op").newest, 5u);
  declare(4000, 6, 2, 0);  // a collective with a root as its peer
  growing.refresh(*tail);
  EXPECT_EQ(tail->process().comms[0].functions.at("my_op").newest, 6u);
}

// They are no operations, and are reported once they are over.
TEST(LiveTail, PassesOverKernelsAndLaunches) {
  Growing growing;
  FileBuilder::Log& gpu = growing.file.log(12, "gpu");
  auto tail = growing.open();
  const uint32_t name = gpu.kernel_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  for (uint32_t i = 1; i <= 3000; ++i) {  // several chunks
    gpu.add(Kind::kKernel, format::KernelRecord{head(2000, 10), name, i, 7, 0, 1, 0, 0, 4});
    gpu.add(Kind::kLaunchCall,
            format::LaunchCallRecord{head(1900, 5), i, 1, format::LaunchCall::kKernel, 0, 0});
    gpu.add(Kind::kCopy,
            format::CopyRecord{head(2000, 10), 64, i, 7, 0, 1, format::CopyKind::kCopy, 1, 3, 0});
  }
  growing.coll(3000, 8);
  growing.refresh(*tail);
  EXPECT_EQ(tail->process().ops, 1);
  EXPECT_EQ(tail->process().open, 0u);
  EXPECT_EQ(tail->process().comms[0].functions.at("AllReduce").newest, 8u);
}

TEST(LiveTail, FindsNewThreadsAndCommunicators) {
  Growing growing;
  auto tail = growing.open();
  uint32_t pair = growing.file.comm(0xdef, 0, 2, "pair");
  FileBuilder::Log& late = growing.file.log(20, "late");
  format::CollRecord record{};
  record.head = head(9000, 10);
  record.comm = pair;
  record.shape = late.shape("Broadcast", "ncclInt8");
  late.add(Kind::kColl, record);
  growing.refresh(*tail);
  ASSERT_EQ(tail->process().comms.size(), 2u);
  EXPECT_EQ(tail->process().comms[1].functions.at("Broadcast").newest, 0u);
  EXPECT_EQ(tail->process().ops, 1);
}

TEST(LiveTail, PassesOverWhatIsTooMuchAndEstimates) {
  Growing growing;
  auto tail = growing.open();
  constexpr int kOps = 20'000;  // 40 chunks
  for (int i = 0; i < kOps; ++i) growing.coll(1000 + static_cast<uint64_t>(i), static_cast<uint64_t>(i));
  growing.refresh(*tail);
  EXPECT_NEAR(tail->process().ops, kOps, kOps * 0.15);
  EXPECT_EQ(tail->process().comms[0].functions.at("AllReduce").newest, kOps - 1u);
  auto late = growing.open();
  EXPECT_FALSE(late->process().from_start);
  EXPECT_EQ(late->process().comms[0].functions.at("AllReduce").newest, kOps - 1u);
}

TEST(LiveTail, KeepsUpWithARing) {
  Growing growing(4);
  auto tail = growing.open();
  uint64_t seq = 0;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 700; ++i, ++seq) growing.coll(1000 + seq, seq);
    growing.refresh(*tail);
    EXPECT_EQ(tail->process().comms[0].functions.at("AllReduce").newest, seq - 1) << "round " << round;
  }
  EXPECT_NEAR(tail->process().ops, static_cast<double>(seq), static_cast<double>(seq) * 0.3);
}

TEST(LiveTail, WhatARingHasOverwrittenIsNoLongerOpen) {
  Growing growing(4);
  auto tail = growing.open();
  auto open_op = [&](uint64_t start) {
    format::ApiOpRecord op{};
    op.head = head(start);
    op.comm = growing.world;
    op.peer = -1;
    op.shape = growing.log->shape("my_reduce");
    growing.log->add(Kind::kApiOp, op);
  };
  open_op(4000);
  growing.refresh(*tail);
  ASSERT_TRUE(tail->process().oldest_open);
  EXPECT_EQ(tail->process().oldest_open->started_ns, at(4000));
  // All of one size: another operation, open as well, lies where the first one was.
  for (uint64_t i = 0; i < 5 * format::kChunkBytes / sizeof(format::ApiOpRecord); ++i) open_op(10'000 + i);
  growing.refresh(*tail);
  ASSERT_TRUE(tail->process().oldest_open);
  EXPECT_GE(tail->process().oldest_open->started_ns, at(10'000));
}

TEST(LiveTail, CountsWhatCaptureDropped) {
  Growing growing;
  auto tail = growing.open();
  growing.log->losses()[0] = 5;         // no_chunk
  growing.log->losses()[3] = 7;         // overwritten: the way of a ring
  growing.file.header().losses[4] = 2;  // no_log
  growing.refresh(*tail);
  EXPECT_EQ(tail->process().dropped, 7u);
}

const LiveCounts* counts_of(const LiveTail& tail, const std::string& func) {
  auto known = tail.tally()->counts().find({0, func});
  return known == tail.tally()->counts().end() ? nullptr : &known->second;
}
uint64_t in_all(const SecondsHistogram& histogram) {
  uint64_t sum = 0;
  for (uint64_t count : histogram.counts) sum += count;
  return sum;
}

TEST(LiveTail, CountsAllFromTheStartAndNothingTwice) {
  Growing growing;
  constexpr uint64_t kOps = 20'000;  // 40 chunks
  for (uint64_t i = 0; i < kOps; ++i) growing.coll(1000 + i, i);
  auto tail = growing.open(LiveTail::Depth::kAll);
  EXPECT_TRUE(tail->process().from_start);
  EXPECT_FALSE(tail->behind());
  ASSERT_NE(counts_of(*tail, "AllReduce"), nullptr);
  EXPECT_EQ(counts_of(*tail, "AllReduce")->counted.operations(), kOps);
  EXPECT_EQ(counts_of(*tail, "AllReduce")->counted.bytes(), static_cast<double>(kOps) * 256 * 4);
  EXPECT_EQ(tail->process().arrivals.size(), LiveTail::kMostArrivals);
  EXPECT_EQ(tail->process().arrivals.back().number, kOps - 1);
  growing.coll(1000 + kOps, kOps);
  growing.coll(2000 + kOps, 0, "AllGather");
  growing.refresh(*tail);
  EXPECT_EQ(counts_of(*tail, "AllReduce")->counted.operations(), kOps + 1);
  EXPECT_EQ(counts_of(*tail, "AllGather")->counted.bytes(), 256 * 4 * 8) << "the size of eight ranks' parts";
  EXPECT_EQ(tail->process().arrivals.size(), 2u);
  growing.refresh(*tail);
  EXPECT_EQ(counts_of(*tail, "AllReduce")->counted.operations(), kOps + 1);
  EXPECT_TRUE(tail->process().arrivals.empty());
}

TEST(LiveTail, AHugeFileIsReadInSeveralLooks) {
  Growing growing;
  constexpr uint64_t kOps = 200'000;  // 391 chunks
  for (uint64_t i = 0; i < kOps; ++i) growing.coll(1000 + i, i);
  auto tail = growing.open(LiveTail::Depth::kAll);
  EXPECT_TRUE(tail->behind());
  EXPECT_LT(counts_of(*tail, "AllReduce")->counted.operations(), kOps);
  ASSERT_TRUE(tail->refresh());
  EXPECT_FALSE(tail->behind());
  EXPECT_EQ(counts_of(*tail, "AllReduce")->counted.operations(), kOps);
}

TEST(LiveTail, TimesCallsAndGpuWorkOfAllChannels) {
  Growing growing;
  FileBuilder::Log& progress = growing.file.log(10, "progress");  // is read before the tasks
  for (uint64_t i = 1; i <= 1000; ++i) add_allreduce(*growing.log, progress, growing.world, i * 10'000);
  auto tail = growing.open(LiveTail::Depth::kAll);
  const LiveCounts* counts = counts_of(*tail, "AllReduce");
  ASSERT_NE(counts, nullptr);
  EXPECT_EQ(counts->counted.operations(), 1000u) << "a call and its task are one";
  EXPECT_EQ(in_all(counts->call_seconds), 1000u);
  EXPECT_NEAR(counts->call_seconds.sum, 1000 * 50e-9, 1e-9);
  const SecondsHistogram& gpu = counts->gpu_seconds[static_cast<size_t>(LiveSource::kChannels)];
  EXPECT_EQ(in_all(gpu), 1000u);
  EXPECT_NEAR(gpu.sum, 1000 * 1101e-9, 1e-9) << "from the first channel's begin to the last one's end";
  const auto& small = counts->bandwidth[static_cast<size_t>(LiveSource::kChannels)][0];
  EXPECT_NEAR(small.sum / 1000, 4096 / 1101e-9 * 2 * 7 / 8, 1e6);
}

TEST(LiveTail, AnOpenCallIsTimedOnceItEnds) {
  Growing growing;
  auto tail = growing.open(LiveTail::Depth::kAll);
  uint16_t shape = growing.log->shape("Send", "ncclInt8");
  growing.log->add(Kind::kP2pApi, format::P2pApiRecord{head(5000), 64, growing.world, shape, 0});
  growing.refresh(*tail);
  ASSERT_NE(counts_of(*tail, "Send"), nullptr);
  EXPECT_EQ(in_all(counts_of(*tail, "Send")->call_seconds), 0u);
  EXPECT_EQ(tail->process().comms[0].oldest_open_ns, at(5000));
  auto& call = growing.log->last<format::P2pApiRecord>();
  call.head.stop_after = 2000;
  call.head.flags |= format::kFlagStopped;
  growing.refresh(*tail);
  EXPECT_EQ(in_all(counts_of(*tail, "Send")->call_seconds), 1u);
  EXPECT_NEAR(counts_of(*tail, "Send")->call_seconds.sum, 2e-6, 1e-12);
  EXPECT_EQ(tail->process().comms[0].oldest_open_ns, 0);
}

TEST(LiveTail, TimesTheApisOperationsAndKernelsByName) {
  Growing growing;
  format::ApiOpRecord op{};
  op.head = head(4000, 90);
  op.head.flags |= format::kFlagGpuTimes;
  op.comm = growing.world;
  op.in_count = 1 << 20;
  op.element_bytes = 1;
  op.gpu_clock = static_cast<uint16_t>(format::ApiClock::kGpuNs);
  op.gpu_start = 100;
  op.gpu_end = 1100;
  op.peer = -1;
  op.shape = growing.log->shape("my_reduce");
  growing.log->add(Kind::kApiOp, op);
  FileBuilder::Log& gpu = growing.file.log(12, "gpu");
  const uint32_t nccl = gpu.kernel_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
                 other = gpu.kernel_name("sgemm");
  for (uint32_t i = 1; i <= 10; ++i) {
    gpu.add(Kind::kKernel, format::KernelRecord{head(2000, 10), nccl, i, 7, 0, 1, 0, 0, 4});
    gpu.add(Kind::kKernel, format::KernelRecord{head(2000, 10), other, i, 7, 0, 1, 0, 0, 4});
  }
  auto tail = growing.open(LiveTail::Depth::kAll);
  const LiveCounts* mine = counts_of(*tail, "my_reduce");
  ASSERT_NE(mine, nullptr);
  EXPECT_NEAR(mine->gpu_seconds[static_cast<size_t>(LiveSource::kApi)].sum, 1e-6, 1e-12);
  auto kernels = tail->tally()->counts().find({format::kNoComm, "AllReduce"});
  ASSERT_NE(kernels, tail->tally()->counts().end());
  EXPECT_EQ(in_all(kernels->second.gpu_seconds[static_cast<size_t>(LiveSource::kKernel)]), 10u);
  EXPECT_EQ(kernels->second.counted.operations(), 0u) << "kernels are no operations";
}

// NCCL's calls in one file of a process, kernels and the driver's calls in another.
class WithKernels {
 public:
  WithKernels() {
    join->expect_kernels();
    world = nccl.comm(0xabc, 0, 8, "world");
    caller = &nccl.log(100, "python", 0x7f00'0000'0001);
    cuda.header().source = format::Source::kCuda;
    gpu = &cuda.log(200, "cupti");
    name = gpu->kernel_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  }
  // A group of so many all-reduces of 4 KiB, launched once.
  void group(uint64_t start, int calls) {
    uint16_t shape = caller->shape("AllReduce", "ncclFloat32");
    uint64_t group =
        caller->add(Kind::kGroupApi, format::GroupApiRecord{head(start, 900), world, 10, 200, 1});
    for (int i = 0; i < calls; ++i)
      caller->add_child(Kind::kCollApi, format::CollApiRecord{head(start + 20, 50), 1024, world, shape, 0},
                        group);
    caller->add_child(Kind::kKernelLaunch, format::KernelLaunchRecord{head(start + 300, 100), world, 0, 0, 0},
                      group);
  }
  void call(uint64_t start, uint32_t correlation, uint32_t thread = 1) {
    gpu->add(Kind::kLaunchCall, format::LaunchCallRecord{head(start, 5), correlation, thread,
                                                         format::LaunchCall::kKernel, 0, 0});
  }
  void kernel(uint64_t start, uint32_t length, uint32_t correlation) {
    gpu->add(Kind::kKernel, format::KernelRecord{head(start, length), name, correlation, 7, 0, 1, 0, 0, 4});
  }
  void look() {
    nccl.write(path + "p.nccl.lks");
    cuda.write(path + "p.cuda.lks");
    for (auto* file : {&nccl_tail, &cuda_tail}) {
      const std::string name_of = path + (file == &nccl_tail ? "p.nccl.lks" : "p.cuda.lks");
      if (*file) {
        EXPECT_TRUE((*file)->refresh());
        continue;
      }
      auto opened = LiveTail::open(name_of, LiveTail::Depth::kAll, join);
      ASSERT_TRUE(opened);
      *file = std::move(*opened);
    }
  }
  const SecondsHistogram* of_kernels(const LiveTail& tail, uint32_t comm) const {
    auto known = tail.tally()->counts().find({comm, "AllReduce"});
    return known == tail.tally()->counts().end()
               ? nullptr
               : &known->second.gpu_seconds[static_cast<size_t>(LiveSource::kKernel)];
  }

  std::string path = test_dir() + "/";
  std::shared_ptr<LaunchJoin> join = std::make_shared<LaunchJoin>();
  FileBuilder nccl, cuda;
  uint32_t world = 0, name = 0;
  FileBuilder::Log *caller = nullptr, *gpu = nullptr;
  std::unique_ptr<LiveTail> nccl_tail, cuda_tail;
};

TEST(LiveTail, GivesKernelsToTheOperationsThatLaunchedThem) {
  WithKernels job;
  job.group(10'000, 1);
  job.group(20'000, 2);  // two operations in one kernel
  job.kernel(11'000, 2000, 1);
  job.kernel(21'000, 4000, 2);
  job.kernel(31'000, 8000, 3);  // of a launch that nobody saw
  job.call(10'310, 1);
  job.call(20'310, 2);
  job.call(10'320, 9, 77);  // another thread
  for (uint32_t i = 0; i <= LaunchJoin::kPatience; ++i) job.look();
  const SecondsHistogram* joined = job.of_kernels(*job.nccl_tail, job.world);
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(in_all(*joined), 1u);
  EXPECT_NEAR(joined->sum, 2e-6, 1e-12);
  const auto& bandwidth = job.nccl_tail->tally()->counts().at({job.world, "AllReduce"}).bandwidth;
  EXPECT_NEAR(bandwidth[static_cast<size_t>(LiveSource::kKernel)][0].sum, 4096 / 2e-6 * 2 * 7 / 8, 1e3);
  const SecondsHistogram* rest = job.of_kernels(*job.cuda_tail, format::kNoComm);
  ASSERT_NE(rest, nullptr);
  EXPECT_EQ(in_all(*rest), 2u) << "by their names, once each";
  EXPECT_NEAR(rest->sum, 12e-6, 1e-12);
}

// A launch that is read while it is open would take the calls of whoever comes next on its thread.
TEST(LiveTail, GivesNoKernelToALaunchThatMayBeOver) {
  WithKernels job;
  job.group(10'000, 1);
  auto& launch = job.caller->last<format::KernelLaunchRecord>();
  launch.head.flags = 0;
  launch.head.stop_after = 0;
  job.look();
  job.group(20'000, 2);
  job.kernel(21'000, 4000, 2);
  job.call(20'310, 2);
  for (uint32_t i = 0; i <= LaunchJoin::kPatience; ++i) job.look();
  EXPECT_EQ(in_all(*job.of_kernels(*job.nccl_tail, job.world)), 0u);
  const SecondsHistogram* rest = job.of_kernels(*job.cuda_tail, format::kNoComm);
  ASSERT_NE(rest, nullptr);
  EXPECT_EQ(in_all(*rest), 1u);
}

TEST(LiveTail, JoinsKernelsThatAreToldInAnotherLook) {
  WithKernels job;
  job.group(10'000, 1);
  job.look();
  job.kernel(11'000, 2000, 1);
  job.look();
  job.call(10'310, 1);
  for (uint32_t i = 0; i <= LaunchJoin::kPatience; ++i) job.look();
  const SecondsHistogram* joined = job.of_kernels(*job.nccl_tail, job.world);
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(in_all(*joined), 1u);
  EXPECT_EQ(job.of_kernels(*job.cuda_tail, format::kNoComm), nullptr);
}

TEST(LiveTail, ARingIsCountedOnceWhileItKeepsUpAndSaysWhatItMissed) {
  Growing growing(4);
  auto tail = growing.open(LiveTail::Depth::kAll);
  uint64_t seq = 0;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 700; ++i, ++seq) growing.coll(1000 + seq, seq);
    growing.refresh(*tail);
  }
  EXPECT_EQ(counts_of(*tail, "AllReduce")->counted.operations(), seq);
  EXPECT_EQ(tail->process().passed_over, 0u);
  for (int i = 0; i < 10'000; ++i, ++seq) growing.coll(1000 + seq, seq);
  growing.refresh(*tail);
  EXPECT_GT(tail->process().passed_over, 0u);
  EXPECT_LT(counts_of(*tail, "AllReduce")->counted.operations(), seq);
}

// Ring retention writes what is open again, and says behind it under which handle the host knows it.
TEST(LiveTail, CountsDoNotFallWhereARecordMoves) {
  Growing growing(4);
  auto tail = growing.open(LiveTail::Depth::kAll);
  const uint64_t issued = growing.coll(1000, 0);
  auto move = [&](uint64_t now) {
    format::LinkRecord link{};
    link.head.flags = format::kFlagMoved;
    link.child = now;
    link.parent = issued;
    growing.log->add(Kind::kLink, link);
  };
  move(growing.coll(1000, 0));
  growing.refresh(*tail);
  EXPECT_EQ(counts_of(*tail, "AllReduce")->counted.operations(), 1u);
  const uint64_t again = growing.coll(1000, 0);
  growing.refresh(*tail);  // between the record and its link
  const uint64_t counted = counts_of(*tail, "AllReduce")->counted.operations();
  move(again);
  growing.refresh(*tail);
  EXPECT_GE(counts_of(*tail, "AllReduce")->counted.operations(), counted);
}

TEST(LiveTail, ChannelsOfATaskThatMovesAreTogether) {
  Growing growing(4);
  FileBuilder::Log& progress = growing.file.log(12, "progress");
  auto tail = growing.open(LiveTail::Depth::kAll);
  format::CollRecord task{head(1000), 256, 0, 0, 0, growing.world, growing.log->shape("AllReduce"),
                          2,          16,  0, 0};
  const uint64_t issued = growing.log->add(Kind::kColl, task);
  auto channel = [&](uint64_t stop) {
    progress.add(Kind::kKernelCh,
                 format::KernelChRecord{head(2000, 10), issued, 100, stop, growing.world, 0});
  };
  channel(600);
  growing.refresh(*tail);
  format::LinkRecord link{};
  link.head.flags = format::kFlagMoved;
  link.child = growing.log->add(Kind::kColl, task);
  link.parent = issued;
  growing.log->add(Kind::kLink, link);
  channel(1100);  // the host knows the first handle alone
  growing.refresh(*tail);
  const SecondsHistogram& gpu =
      counts_of(*tail, "AllReduce")->gpu_seconds[static_cast<size_t>(LiveSource::kChannels)];
  EXPECT_EQ(in_all(gpu), 1u);
  EXPECT_NEAR(gpu.sum, 1e-6, 1e-12);
}

TEST(LiveTally, GpuWorkOfAnEndedTaskThatComesAgainIsHarmless) {
  LiveTally tally;
  const LiveTally::Operation op{.comm = 0, .func = "AllReduce", .ranks = 8, .bytes = 64};
  tally.task(op, 1, 1);
  tally.channel(1, 100, 200);  // it has ended; its turn comes when there are too many
  for (uint64_t handle = 2; handle <= LiveTally::kMostPending; ++handle) tally.task(op, handle, 1);
  tally.channel(1, 100, 200);
  tally.task(op, LiveTally::kMostPending + 1, 1);
  tally.channel(LiveTally::kMostPending + 1, 100, 200);
  const SecondsHistogram& gpu =
      tally.counts().at({0, "AllReduce"}).gpu_seconds[static_cast<size_t>(LiveSource::kChannels)];
  EXPECT_EQ(in_all(gpu), 2u);
}

TEST(LiveTail, TooManyFunctionsAreCountedTogether) {
  Growing growing;
  for (uint64_t i = 0; i < LiveTally::kMostFunctions + 50; ++i)
    growing.coll(1000 + i, 0, "func" + std::to_string(i));
  auto tail = growing.open(LiveTail::Depth::kAll);
  EXPECT_EQ(tail->tally()->counts().size(), LiveTally::kMostFunctions + 1);
  EXPECT_EQ(tail->tally()->counts().at({format::kNoComm, "other"}).counted.operations(), 50u);
}

TEST(LiveTail, SurvivesDamage) {
  Growing growing;
  for (int i = 0; i < 3000; ++i) growing.coll(1000, static_cast<uint64_t>(i));
  std::vector<std::byte> good = growing.file.bytes();
  uint64_t random = 88172645463325252u;
  auto next = [&random] { return random ^= random << 13, random ^= random >> 7, random ^= random << 17; };
  for (int round = 0; round < 100; ++round) {
    std::vector<std::byte> bad = good;
    for (int i = 0; i < 40; ++i) {
      size_t at = sizeof(format::FileHeader) + next() % (bad.size() - sizeof(format::FileHeader));
      if (round % 2 == 0)
        at = at / format::kChunkBytes * format::kChunkBytes + format::kHeaderBytes + next() % 64;
      if (at < bad.size()) bad[at] = static_cast<std::byte>(next());
    }
    if (round % 3 == 0) bad.resize(next() % bad.size());
    write_bytes(growing.path, good);
    auto tail = LiveTail::open(growing.path);
    ASSERT_TRUE(tail);
    write_bytes(growing.path, bad);
    (void)(*tail)->refresh();
    (void)LiveTail::open(growing.path);
    write_bytes(growing.path, good);
    auto all = LiveTail::open(growing.path, LiveTail::Depth::kAll);
    ASSERT_TRUE(all);
    write_bytes(growing.path, bad);
    (void)(*all)->refresh();
    (void)LiveTail::open(growing.path, LiveTail::Depth::kAll);
  }
  EXPECT_FALSE(LiveTail::open(test_dir() + "/none.lks"));
}

}  // namespace
}  // namespace lockstep::readers::native
