// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/hsa_test.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <fstream>

#include "tests/support/sanitizers.h"

namespace lockstep::test {
namespace {

using format::Def;
using format::Kind;

std::vector<Packet> several(size_t count, uint64_t object = kCompute) {
  return std::vector<Packet>(count, FakeHsa::kernel(object));
}

TEST_F(HsaTest, KernelsWithNamesTimesAndPlaces) {
  ASSERT_TRUE(run({.gpus = 2}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                auto* queue = hsa.make_queue(64, 1);
                auto* arguments = static_cast<uint64_t*>(hsa.allocate(16));
                arguments[0] = 0x1111000;
                hsa.submit(queue, {FakeHsa::kernel(kCompute, 100'000)});
                hsa.submit(queue, {FakeHsa::kernel(kReduce, 0, {}, reinterpret_cast<uint64_t>(arguments))});
                hsa.submit(queue, {FakeHsa::kernel(kOneRank, 0, {}, reinterpret_cast<uint64_t>(arguments))});
                hsa.wait(queue);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.header().source, format::Source::kHsa);
  EXPECT_EQ(f.header().gpu_clock, format::GpuClock::kAmdTicks);
  const auto dispatches = f.finished();
  ASSERT_EQ(dispatches.size(), 3u);
  EXPECT_EQ(f.symbol(dispatches[0].symbol), "_Z7computePf");
  EXPECT_EQ(f.symbol(dispatches[1].symbol), "ncclDevKernel_Generic_1");
  EXPECT_EQ(dispatches[0].arguments, 0u) << "of RCCL's kernels alone";
  EXPECT_EQ(dispatches[1].arguments, 0x1111000u);
  EXPECT_EQ(dispatches[2].arguments, 0u) << "its first argument is no communicator";
  EXPECT_EQ(dispatches[2].sequence, 3u);
  EXPECT_EQ(dispatches[0].agent, 1u);
  EXPECT_EQ(dispatches[0].grid[0], 2048u);
  EXPECT_EQ(dispatches[0].group[0], 256u);
  const auto times = f.all<format::GpuTimesRecord>(Kind::kGpuTimes);
  EXPECT_GE(times[0].gpu_stop - times[0].gpu_start, 100'000u / 10);
  ASSERT_EQ(f.count(Def::kGpuAgent), 2u);
  const auto agent = f.all<format::GpuAgentDef>(Def::kGpuAgent)[1];
  EXPECT_STREQ(agent.pci, "0000:12:00.0");
  EXPECT_STREQ(agent.uuid, "GPU-0000000000000002");
  EXPECT_EQ(agent.tick_hz, sim::kTickHz);
  // The clock of the agent that worked, and what its ticks are.
  ASSERT_GE(f.count(Def::kGpuClock), 1u);
  const auto clock = f.all<format::GpuClockDef>(Def::kGpuClock)[0];
  EXPECT_EQ(clock.head.id, 1u);
  EXPECT_EQ(clock.system, (clock.ticks - sim::kTicksAtBoot) * 10);
  EXPECT_GE(clock.system_now, clock.system);
  f.expect_sums();
  EXPECT_EQ(f.counters()["executables"], 1u);
  EXPECT_EQ(f.note(format::kNoteGpuModel), "AMD Instinct MI300X");
}

// An address in a packet proves nothing: what is not known to be memory is not looked at.
TEST_F(HsaTest, ArgumentsAreReadWhereTheyCanBe) {
  const auto first_words = [&](const std::string& setting) {
    RunDirectory run;
    const Environment with = {{"HSA_TOOLS_LIB", LOCKSTEP_LIB_DIR "/liblockstep-hsa.so"},
                              {"LOCKSTEP_DIR", run.path()},
                              {"LOCKSTEP_MODE", "default"},
                              {"LOCKSTEP_HSA", setting}};
    EXPECT_TRUE(this->run(
                        {},
                        [](FakeHsa& hsa) {
                          hsa.freeze(kernels_of_tests());
                          auto* queue = hsa.make_queue();
                          const auto launch = [&](const void* arguments) {
                            hsa.submit(queue, {FakeHsa::kernel(kReduce, 0, {},
                                                               reinterpret_cast<uint64_t>(arguments))});
                          };
                          auto* host = static_cast<uint64_t*>(hsa.allocate(64));
                          auto* gpu = static_cast<uint64_t*>(hsa.allocate(64, FakeHsa::Memory::kGpu));
                          host[0] = 0x11;
                          host[6] = 0x12;
                          gpu[0] = 0x21;
                          launch(host);
                          launch(host + 6);
                          launch(host + 1);  // no multiple of 16 bytes
                          launch(host + 8);  // behind
                          launch(gpu);
                          launch(hsa.allocate(64, FakeHsa::Memory::kHiddenGpu));
                          launch(reinterpret_cast<void*>(0x10));
                          launch(nullptr);
                          for (const bool by_pool : {true, false}) {
                            void* gone = hsa.allocate(64);
                            hsa.free(gone, by_pool);
                            launch(gone);
                          }
                          hsa.wait(queue);
                        },
                        with)
                    .ok());
    std::vector<uint64_t> words;
    for (const auto& dispatch : HsaFile(run.files().at(0)).finished()) words.push_back(dispatch.arguments);
    return words;
  };
  EXPECT_EQ(first_words(""), (std::vector<uint64_t>{0x11, 0x12, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(first_words("devargs"), (std::vector<uint64_t>{0x11, 0x12, 0, 0, 0x21, 0, 0, 0, 0, 0}));
  EXPECT_EQ(first_words("noargs"), std::vector<uint64_t>(10, 0));
}

TEST_F(HsaTest, EveryLayoutOfTheTables) {
  struct Release {
    uint32_t root_major, core_major, ext_major, ext_minor;
  };
  for (const Release& release : {Release{1, 1, 1, 400}, Release{1, 1, 1, 424}, Release{1, 1, 1, 456},
                                 Release{2, 2, 2, 552}, Release{3, 2, 2, 560}, Release{3, 2, 2, 576},
                                 Release{3, 2, 2, 608}, Release{3, 2, 2, 720}, Release{3, 2, 2, 744}}) {
    RunDirectory run;
    Environment with = environment();
    with[1].second = run.path();
    ASSERT_TRUE(HsaTest::run(
                    {.root_major = release.root_major,
                     .core_major = release.core_major,
                     .ext_major = release.ext_major,
                     .ext_minor = release.ext_minor},
                    [](FakeHsa& hsa) {
                      hsa.freeze(kernels_of_tests());
                      auto* queue = hsa.make_queue();
                      hsa.submit(queue, several(20));
                      hsa.wait(queue);
                    },
                    with)
                    .ok())
        << release.ext_minor;
    const HsaFile f(run.files().at(0));
    EXPECT_EQ(f.finished().size(), 20u) << release.ext_minor;
    f.expect_sums();
  }
}

TEST_F(HsaTest, AnUnknownVersionOrAMissingSlotIsLeftAlone) {
  const FakeHsaOptions odd[] = {
      {.root_major = 9},  {.ext_major = 7},
      {.core_major = 4},  {.core_minor = 600},
      {.ext_minor = 200}, {.missing_core_slot = capture::hsa::core_slot::kExecutableFreeze}};
  for (const FakeHsaOptions& options : odd) {
    RunDirectory run;
    Environment with = environment();
    with[1].second = run.path();
    const bool has_freeze = options.missing_core_slot == 0 && options.core_minor > 712;
    ASSERT_TRUE(HsaTest::run(
                    options,
                    [&](FakeHsa& hsa) {
                      if (has_freeze) hsa.freeze(kernels_of_tests());
                      auto* queue = hsa.make_queue();
                      hsa.submit(queue, several(5));
                      hsa.wait(queue);
                      EXPECT_EQ(hsa.counts().kernels, 5u);
                      EXPECT_EQ(hsa.counts().callbacks, 0u);
                    },
                    with)
                    .ok());
    const HsaFile f(run.files().at(0));
    EXPECT_EQ(f.count(Kind::kDispatch), 0u);
    EXPECT_NE(f.note(format::kNoteHsa), "");
  }
}

// The program is told by the GPU, in a packet behind the kernel, and never by a thread of ours.
TEST_F(HsaTest, AProgramsSignalMovesToABarrier) {
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                auto* queue = hsa.make_queue(1024);  // with room for all, whenever signals are collected
                for (int i = 0; i < 50; ++i) {
                  const auto signal = hsa.make_signal();
                  hsa.submit(queue, {FakeHsa::kernel(kReduce, 20'000, signal)});
                  hsa.wait(signal);
                  const auto* memory = capture::hsa::memory_of(signal);
                  EXPECT_GT(memory->start, 0u) << "stamped by the GPU";
                  EXPECT_GE(memory->stop, memory->start);
                }
                hsa.wait(queue);
                EXPECT_EQ(hsa.counts().barriers, 50u);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 50u);
  for (const auto& dispatch : f.finished()) EXPECT_NE(dispatch.head.flags & format::kFlagSignalled, 0);
  EXPECT_EQ(f.counters()["barriers added"], 50u);
  f.expect_sums();
}

TEST_F(HsaTest, LiteKeepsRcclsKernelsAlsoSignalledOnes) {
  ASSERT_TRUE(run(
                  {},
                  [](FakeHsa& hsa) {
                    hsa.freeze(kernels_of_tests());
                    auto* queue = hsa.make_queue(64);
                    for (int i = 0; i < 400; ++i) {  // far more packets than the queue holds
                      hsa.submit(queue, {FakeHsa::kernel(kCompute)});
                      const auto signal = hsa.make_signal();
                      if (i % 40 != 0) continue;
                      hsa.wait(queue);  // a queue that is filling gets no packet more
                      hsa.submit(queue, {FakeHsa::kernel(kReduce, 0, signal)});
                      hsa.wait(signal);
                    }
                    hsa.wait(queue);
                    EXPECT_EQ(hsa.counts().overflows, 0u);
                  },
                  environment("lite"))
                  .ok());
  const HsaFile f = file();
  // What finds the queue too full gets no barrier, and is counted.
  EXPECT_EQ(f.finished().size() + f.counters()["drop (sig pool)"] + f.counters()["drop (no room)"], 10u);
  EXPECT_EQ(f.counters()["drop (mode)"], 400u);
  f.expect_sums();
}

TEST_F(HsaTest, BatchesOfAnySizeAlsoBeyondTheEndOfTheRing) {
  for (const bool is_linear : {false, true}) {
    RunDirectory run;
    Environment with = environment();
    with[1].second = run.path();
    ASSERT_TRUE(HsaTest::run(
                    {.root_major = 3,
                     .core_major = 2,
                     .ext_major = 2,
                     .ext_minor = 608,
                     .are_batches = true,
                     .is_wrapped_linear = is_linear},
                    [&](FakeHsa& hsa) {
                      hsa.freeze(kernels_of_tests());
                      auto* queue = hsa.make_queue(64);
                      for (const size_t count : {1u, 40u, 40u, 64u, 63u}) {
                        std::vector<Packet> batch = several(count);
                        batch.back().completion = hsa.make_signal();
                        const auto last = batch.back().completion;
                        hsa.submit(queue, batch);
                        hsa.wait(last);
                      }
                      hsa.wait(queue);
                      EXPECT_EQ(hsa.counts().most_in_callback, 64u);
                      EXPECT_EQ(hsa.counts().kernels, 208u);
                    },
                    with)
                    .ok());
    const HsaFile f(run.files().at(0));
    // On a busy machine the signals of one batch may be in use when the next one comes.
    EXPECT_EQ(f.finished().size() + f.counters()["drop (sig pool)"], 208u);
    for (const auto& dispatch : f.finished()) EXPECT_EQ(f.symbol(dispatch.symbol), "_Z7computePf");
    EXPECT_EQ(f.counters()["wrapped batches"] != 0, is_linear);
    EXPECT_EQ(f.counters()["drop (batch skip)"], 0u);
    f.expect_sums();
  }
}

TEST_F(HsaTest, WhatNoInterceptQueueCanBeMadeOfIsCounted) {
  ASSERT_TRUE(run({.intercept_status = 0x1008}, [](FakeHsa& hsa) {
                auto* queue = hsa.make_queue();
                hsa.submit(queue, several(5));
                hsa.wait(queue);
                EXPECT_EQ(hsa.counts().kernels, 5u);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.counters()["plain queues"], 1u);
  const auto queue = f.all<format::GpuQueueDef>(Def::kGpuQueue).at(0);
  EXPECT_EQ(queue.state, format::QueueState::kPlain);
  EXPECT_EQ(queue.status, 0x1008u);
}

capture::hsa::QueueDescriptor described(uint32_t packets) {
  capture::hsa::QueueDescriptor wanted{};
  wanted.version = capture::hsa::kDescriptorVersion;
  wanted.bytes = packets * sizeof(Packet);
  wanted.priority = capture::hsa::kNormalPriority;
  wanted.private_bytes = UINT32_MAX;
  return wanted;
}
const FakeHsaOptions kRocm10{.root_major = 3, .core_major = 2, .ext_major = 2, .ext_minor = 744};

// HIP makes its queues so from ROCm 10 on.
TEST_F(HsaTest, QueuesThatAreDescribedAreTraced) {
  ASSERT_TRUE(run(kRocm10, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                constexpr uint32_t kMask[] = {0xff, 0};
                std::vector wanted(3, described(64));
                wanted[1].priority = 2;
                wanted[2].mask = kMask;
                wanted[2].mask_bits = 64;
                ASSERT_EQ(hsa.make_queues(wanted), capture::hsa::kSuccess);
                for (const auto& made : wanted) {
                  ASSERT_NE(made.queue, nullptr);
                  EXPECT_TRUE(hsa.asked(made.queue).is_intercept);
                  EXPECT_EQ(made.queue->size, 64u);
                  hsa.submit(made.queue, several(20));
                  hsa.wait(made.queue);
                }
                EXPECT_EQ(hsa.asked(wanted[0].queue).priority, 1u);
                EXPECT_EQ(hsa.asked(wanted[1].queue).priority, 2u);
                EXPECT_EQ(hsa.asked(wanted[2].queue).mask_bits, 64u);
                hsa.destroy(wanted[0].queue);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 60u);
  EXPECT_EQ(f.counters()["queues"], 3u);
  EXPECT_EQ(f.counters()["other queues"], 0u);
  EXPECT_EQ(f.all<format::GpuQueueDef>(Def::kGpuQueue).at(0).path, format::QueuePath::kDescribed);
  f.expect_sums();
}

// One that cannot be intercepted is the program's as it asked for it, and leaves the others.
TEST_F(HsaTest, DescribedQueuesThatCannotBeInterceptedAreCounted) {
  ASSERT_TRUE(run(kRocm10, [](FakeHsa& hsa) {
                std::vector wanted(5, described(64));
                wanted[0].flags = 1;   // in GPU memory
                wanted[1].engine = 1;  // for copies
                wanted[2].bytes = 100;
                wanted[3].traffic_class = 7;
                ASSERT_EQ(hsa.make_queues(wanted), 0x1001u);  // the third
                EXPECT_EQ(wanted[2].queue, nullptr);
                for (const size_t i : {0, 1, 3}) {
                  ASSERT_NE(wanted[i].queue, nullptr);
                  EXPECT_FALSE(hsa.asked(wanted[i].queue).is_intercept);
                  hsa.submit(wanted[i].queue, several(5));
                  hsa.wait(wanted[i].queue);
                }
                EXPECT_TRUE(hsa.asked(wanted[4].queue).is_intercept);
                // Of another version nobody knows where the second one is.
                std::vector newer(1, described(64));
                newer[0].version = 2;
                EXPECT_NE(hsa.make_queues(newer), capture::hsa::kSuccess);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.count(Kind::kDispatch), 0u);
  EXPECT_EQ(f.counters()["queues"], 1u);
  EXPECT_EQ(f.counters()["other queues"], 2u);
  EXPECT_NE(f.note(format::kNoteHsa).find("DEBUG_CLR_AQL_DEV_QUEUE=0"), std::string::npos);
}

// Trees of 2026 hold other functions there.
TEST_F(HsaTest, ASlotThatIsAnotherFunctionsIsLeftAlone) {
  FakeHsaOptions options = kRocm10;
  options.create_queues_slot = 720;
  ASSERT_TRUE(run(options, [](FakeHsa& hsa) {
                void* const theirs = *reinterpret_cast<void**>(static_cast<char*>(hsa.tables()->ext) + 712);
                void* const slot = *reinterpret_cast<void**>(static_cast<char*>(hsa.tables()->ext) + 704);
                EXPECT_EQ(slot, theirs);  // the function that nobody should call
                std::vector wanted(1, described(64));
                ASSERT_EQ(hsa.make_queues(wanted), capture::hsa::kSuccess);
                EXPECT_FALSE(hsa.asked(wanted[0].queue).is_intercept);
              }).ok());
}

TEST_F(HsaTest, CountedQueuesAreCounted) {
  ASSERT_TRUE(run(kRocm10, [](FakeHsa& hsa) {
                auto* queue = hsa.acquire_counted();
                hsa.submit(queue, several(5));
                hsa.wait(queue);
                EXPECT_EQ(hsa.counts().kernels, 5u);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.counters()["other queues"], 1u);
  EXPECT_EQ(f.all<format::GpuQueueDef>(Def::kGpuQueue).at(0).path, format::QueuePath::kCounted);
}

TEST_F(HsaTest, SignalsThatRunOutLeaveKernelsWithoutTimes) {
  ASSERT_TRUE(run({.most_signals = 0}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                auto* queue = hsa.make_queue();
                const auto signal = hsa.make_signal();
                hsa.submit(queue, several(5));
                hsa.submit(queue, {FakeHsa::kernel(kReduce, 0, signal)});
                hsa.wait(signal);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.count(Kind::kDispatch), 6u);
  EXPECT_EQ(f.counters()["drop (sig pool)"], 6u);
  EXPECT_TRUE(f.open().empty()) << "none is taken for one that hangs";
  f.expect_sums();
}

// Barriers of ours take no place that the program counts on: it asked for 64, and has 60 on their way.
TEST_F(HsaTest, BarriersHaveRoomOfTheirOwnWhereAQueueMustNotOverflow) {
  ASSERT_TRUE(run({.is_idle = true}, [](FakeHsa& hsa) {
                constexpr uint64_t kOnTheirWay = 60;
                hsa.freeze(kernels_of_tests());
                auto* queue = hsa.make_queue(64);
                capture::hsa::Signal last{};
                for (uint64_t i = 0; i < kOnTheirWay; ++i)
                  hsa.submit(queue, {FakeHsa::kernel(kReduce, 0, last = hsa.make_signal())});
                hsa.go();
                hsa.wait(last);
                hsa.wait(queue);
                EXPECT_EQ(hsa.counts().barriers, kOnTheirWay);
                EXPECT_LE(kOnTheirWay + hsa.counts().barriers, queue->size);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 60u);
  f.expect_sums();
}

// Such a queue was fuller once than barriers may be added to, and none of its packets is without a signal.
TEST_F(HsaTest, AQueueThatWasNearlyFullIsTimedOnceItIsEmpty) {
  constexpr uint64_t kLater = 200;
  ASSERT_TRUE(run({.is_idle = true}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                auto* queue = hsa.make_queue(64);
                for (int i = 0; i < 60; ++i)
                  hsa.submit(queue, {FakeHsa::kernel(kReduce, 0, hsa.make_signal())});
                hsa.go();
                for (uint64_t i = 0; i < kLater; ++i) {
                  hsa.submit(queue, {FakeHsa::kernel(kCompute, 0, hsa.make_signal())});
                  hsa.wait(queue);
                }
              }).ok());
  const HsaFile f = file();
  EXPECT_GE(f.finished().size(), kLater);
  EXPECT_LE(f.counters()["drop (sig pool)"], 60u);
  f.expect_sums();
}

// Where the runtime gives fewer signals than a queue holds packets, it has a smaller ring of them: 8 of 32.
TEST_F(HsaTest, AQueueWorksWithTheSignalsThatItGets) {
  ASSERT_TRUE(run({.most_signals = 45}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                auto *first = hsa.make_queue(32), *second = hsa.make_queue(32);
                EXPECT_EQ(hsa.counts().live_signals, 40u);
                for (int round = 0; round < 20; ++round) {
                  for (auto* queue : {first, second}) {
                    hsa.submit(queue, several(5));
                    hsa.wait(queue);
                  }
                }
                EXPECT_EQ(hsa.counts().kernels, 200u);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 200u);
  EXPECT_EQ(f.counters()["signals"], 40u);
  f.expect_sums();
}

// The first ones take no more than leaves some for each: a process may drive eight GPUs with ten queues each.
TEST_F(HsaTest, EachOfManyQueuesIsTimedByABoundedNumberOfSignals) {
  constexpr int kQueues = 80;
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                std::vector<capture::hsa::Queue*> queues;
                for (int i = 0; i < kQueues; ++i) queues.push_back(hsa.make_queue(4096));
                for (auto* queue : queues) hsa.submit(queue, several(5));
                for (auto* queue : queues) hsa.wait(queue);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), kQueues * 5u);
  EXPECT_LE(f.counters()["signals"], uint64_t{1} << 17);
  f.expect_sums();
}

// As a full disk: growth beyond this limit fails. Kernels run on, and what is not kept is counted.
TEST_F(HsaTest, AFullDiskStopsCaptureAndNothingElse) {
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{4096}, rlim_t{100'000}, rlim_t{1} << 20}) {
    SCOPED_TRACE(bytes);
    constexpr uint64_t kKernels = 60'000;
    RunDirectory run;
    Environment with = environment();
    with[1].second = run.path();
    ASSERT_TRUE(HsaTest::run(
                    {},
                    [&](FakeHsa& hsa) {
                      hsa.freeze(kernels_of_tests());
                      auto* queue = hsa.make_queue(1024);
                      const auto signal = hsa.make_signal();
                      for (uint64_t i = 0; i < kKernels / 20; ++i) hsa.submit(queue, several(20));
                      hsa.submit(queue, {FakeHsa::kernel(kReduce, 0, signal)});
                      hsa.wait(signal);
                      hsa.wait(queue);
                      EXPECT_EQ(hsa.counts().kernels, kKernels + 1);
                    },
                    with, bytes)
                    .ok());
    for (const std::string& path : run.files()) {
      const HsaFile f(path);
      EXPECT_TRUE(f.problems().empty()) << f.problems().front();
      EXPECT_LE(f.size(), std::max<size_t>(bytes, 4096));
      if (bytes < rlim_t{1} << 20) continue;
      EXPECT_EQ(f.state(), format::FileState::kDiskFull);
      EXPECT_GT(f.finished().size(), 1000u);
      EXPECT_GT(f.lost(), 0u);
      LksFile::remove_segment(path);
    }
  }
}

// More kernels on their way than there are signals, all ended before ours looks: each is recorded all the
// same, but for those that came faster than a file is written.
TEST_F(HsaTest, AHundredThousandOfAHundredThousand) {
  constexpr uint64_t kKernels = 100'000;
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                auto* queue = hsa.make_queue(1024);
                for (uint64_t i = 0; i < kKernels / 20; ++i) hsa.submit(queue, several(20));
                hsa.wait(queue);
                EXPECT_LE(hsa.counts().live_signals, 1024u);
              }).ok());
  const HsaFile f = file();
  std::map<std::string, uint64_t> counters = f.counters();
  EXPECT_EQ(counters["packets"], kKernels);
  EXPECT_EQ(counters["recorded OK"] + counters["drop (sig pool)"] + counters["drop (no room)"] +
                counters["unwritten"],
            kKernels);
  EXPECT_GT(counters["recorded OK"], kKernels / 20);
  f.expect_sums();
}

pid_t thread_named(const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::getline(std::ifstream(entry.path() / "comm"), found);
    if (found == name) return std::stoi(entry.path().filename());
  }
  return 0;
}

// A child of this process that lets one of its threads get no turn, until it is killed. 0: not permitted.
pid_t stop_thread(pid_t thread) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  int stopped[2];
  if (pipe(stopped) != 0) return 0;
  const pid_t tracer = fork();
  if (tracer == 0) {
    const bool is_traced = ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0 &&
                           ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 &&
                           waitpid(thread, nullptr, __WALL) == thread;
    if (!is_traced || write(stopped[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(stopped[1]);
  char word;
  const bool is_stopped = read(stopped[0], &word, 1) == 1;
  close(stopped[0]);
  return is_stopped ? tracer : 0;
}

// Our thread gets no turn at all: launches collect what has ended, and nothing is lost.
TEST_F(HsaTest, AStarvedCollectorLosesNothing) {
  constexpr uint64_t kKernels = 10'000;
  constexpr int kNotPermitted = 40;
  const Exit exit = run({}, [](FakeHsa& hsa) {
    hsa.freeze(kernels_of_tests());
    auto* queue = hsa.make_queue(64);
    pid_t collector = 0;  // it takes its name once it runs
    while (collector == 0) collector = thread_named("lockstep-hsa");
    const pid_t tracer = stop_thread(collector);
    if (tracer == 0) _exit(kNotPermitted);
    for (uint64_t i = 0; i < kKernels / 20; ++i) {
      hsa.submit(queue, several(20));
      hsa.wait(queue);
    }
    kill(tracer, SIGKILL);
    waitpid(tracer, nullptr, 0);
  });
  if (exit.code == kNotPermitted) GTEST_SKIP() << "no thread may be traced here";
  EXPECT_TRUE(exit.ok()) << exit;
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), kKernels);
  f.expect_sums();
}

TEST_F(HsaTest, BadStampsAreCountedByReason) {
  for (const bool goes_back : {false, true}) {
    RunDirectory run;
    Environment with = environment();
    with[1].second = run.path();
    ASSERT_TRUE(HsaTest::run(
                    {.has_stamps = goes_back, .goes_back = goes_back},
                    [](FakeHsa& hsa) {
                      hsa.freeze(kernels_of_tests());
                      auto* queue = hsa.make_queue();
                      hsa.submit(queue, several(7));
                      hsa.wait(queue);
                    },
                    with)
                    .ok());
    const HsaFile f(run.files().at(0));
    EXPECT_EQ(f.counters()[goes_back ? "drop (ts invalid)" : "drop (ts fail)"], 7u);
    f.expect_sums();
  }
}

TEST_F(HsaTest, AKilledProcessLeavesTheKernelThatHangs) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  Child child = Child::start(environment(), [&] {
    FakeHsa& hsa = FakeHsa::get();
    hsa.init({});
    hsa.freeze(kernels_of_tests());
    auto* queue = hsa.make_queue();
    hsa.submit(queue, several(3));
    hsa.wait(queue);
    hsa.submit(queue, {FakeHsa::kernel(kReduce, sim::kNever)});
    hsa.submit(queue, several(2));
    // Names are defined, and ends recorded, some milliseconds later.
    const std::string path = run_.files().at(0);
    while (HsaFile(path).finished().size() < 3 || HsaFile(path).count(Def::kKernelSymbol) < 2) sleep_ms(5);
    EXPECT_EQ(write(ready[1], "x", 1), 1);
    pause();
  });
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child.pid(), SIGKILL);
  EXPECT_EQ(child.wait().signal, SIGKILL);
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 3u);
  ASSERT_EQ(f.open().size(), 3u);
  EXPECT_EQ(f.symbol(f.open()[0].symbol), "ncclDevKernel_Generic_1");
  LksFile::remove_segment(f.path());
}

TEST_F(HsaTest, ANewRuntimeInTheSameProcess) {
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                for (int round = 0; round < 3; ++round) {
                  if (round > 0) hsa.init({});
                  hsa.freeze(kernels_of_tests());
                  auto* queue = hsa.make_queue();
                  hsa.submit(queue, several(10));
                  hsa.wait(queue);
                  hsa.shut_down();
                  EXPECT_EQ(hsa.counts().live_signals, 0u) << "no signal is left behind";
                }
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 30u);
  f.expect_sums();
}

TEST_F(HsaTest, TheSameTablesTwice) {
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                void* library = dlopen(LOCKSTEP_LIB_DIR "/liblockstep-hsa.so", RTLD_NOW | RTLD_NOLOAD);
                hsa.load_tool(reinterpret_cast<bool (*)(const void*, uint64_t, uint64_t, const char* const*)>(
                    dlsym(library, "OnLoad")));
                hsa.freeze(kernels_of_tests());
                auto* queue = hsa.make_queue();
                hsa.submit(queue, several(4));
                hsa.wait(queue);
              }).ok());
  EXPECT_EQ(file().finished().size(), 4u);
}

TEST_F(HsaTest, AForkedChildRecordsNothingAndEnds) {
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                auto* queue = hsa.make_queue();
                hsa.submit(queue, several(4));
                hsa.wait(queue);
                const pid_t child = fork();
                if (child == 0) exit(0);  // with exit handlers
                int status = -1;
                EXPECT_EQ(waitpid(child, &status, 0), child);
                EXPECT_EQ(status, 0);
                hsa.submit(queue, several(4));
                hsa.wait(queue);
              }).ok());
  EXPECT_EQ(file().finished().size(), 8u);
}

TEST_F(HsaTest, NoGpus) {
  ASSERT_TRUE(run({.gpus = 0}, [](FakeHsa&) {}).ok());
  EXPECT_EQ(file().note(format::kNoteHsa), "no GPU in this process");
}

TEST_F(HsaTest, QueuesComeAndGo) {
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                for (int i = 0; i < 20; ++i) {
                  auto* queue = hsa.make_queue();
                  hsa.submit(queue, several(5));
                  hsa.wait(queue);
                  hsa.destroy(queue);
                  EXPECT_EQ(hsa.counts().live_signals, 0u);
                }
                auto* queue = hsa.make_queue();
                hsa.submit(queue, {FakeHsa::kernel(kReduce, sim::kNever)});
                hsa.destroy(queue);  // with a kernel that never ended
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 100u);
  EXPECT_EQ(f.counters()["unfinished"], 1u);
  EXPECT_EQ(f.counters()["queues"], 21u);
  f.expect_sums();
}

TEST_F(HsaTest, AQueueAtTheAddressOfOneThatIsBeingDestroyedGoesOn) {
  capture::hsa::Queue* next = nullptr;
  ASSERT_TRUE(run({.on_destroyed =
                       [&] {
                         if (next == nullptr) next = FakeHsa::get().make_queue();
                       }},
                  [&](FakeHsa& hsa) {
                    hsa.freeze(kernels_of_tests());
                    auto* first = hsa.make_queue();
                    hsa.submit(first, several(5));
                    hsa.wait(first);
                    hsa.destroy(first);
                    ASSERT_EQ(next, first);
                    hsa.submit(next, several(7));
                    hsa.wait(next);
                    hsa.destroy(next);
                    EXPECT_EQ(hsa.counts().live_signals, 0u);
                  })
                  .ok());
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 12u);
  EXPECT_EQ(f.counters()["queues"], 2u);
  f.expect_sums();
}

TEST_F(HsaTest, AQueueThatTheRuntimeDoesNotDestroyGoesOn) {
  ASSERT_TRUE(run({.destroy_status = 0x1000}, [](FakeHsa& hsa) {
                hsa.freeze(kernels_of_tests());
                auto* queue = hsa.make_queue();
                hsa.destroy(queue);
                hsa.submit(queue, several(5));
                hsa.wait(queue);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 5u);
  f.expect_sums();
}

TEST_F(HsaTest, QueuesOfMoreGpusThanAreListedAreCounted) {
  ASSERT_TRUE(run({.gpus = 66}, [](FakeHsa& hsa) {
                for (const uint32_t gpu : {63u, 64u, 65u}) hsa.wait(hsa.make_queue(64, gpu));
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.count(Def::kGpuAgent), 64u);
  EXPECT_EQ(f.counters()["queues"], 1u);
  EXPECT_EQ(f.counters()["plain queues"], 2u);
  EXPECT_EQ(f.note(format::kNoteHsa), "only the first 64 GPUs are recorded");
}

TEST_F(HsaTest, NamesThatFindNoMemoryAreLeftOut) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need address space themselves";
  constexpr size_t kLongest = format::kMaxKernelNameBytes - 1;
  const auto name = [](size_t length, char letter) { return std::string(length, letter) + ".kd"; };
  ASSERT_TRUE(run({}, [&](FakeHsa& hsa) {
                // Fills the first MiB of names up to 500 bytes.
                std::vector<sim::FakeSymbol> symbols;
                for (uint64_t i = 0; i < 1023; ++i)
                  symbols.push_back({name(kLongest, 'a'), 0x10000 + 64 * i});
                symbols.push_back({name(523, 'b'), 0x8000});
                hsa.freeze(symbols);
                symbols = {{name(kLongest, 'c'), 0x8040}, {name(100, 'd'), 0x8080}};
                std::vector<char>(1 << 16);  // what freeze() allocates is there
                rlimit before{};
                getrlimit(RLIMIT_AS, &before);
                const rlimit none{1, before.rlim_max};
                setrlimit(RLIMIT_AS, &none);
                hsa.freeze(std::move(symbols));
                setrlimit(RLIMIT_AS, &before);
                auto* queue = hsa.make_queue();
                hsa.submit(queue, several(1, 0x8040));
                hsa.submit(queue, several(1, 0x8080));
                hsa.wait(queue);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.symbol(f.finished().at(0).symbol), "");
  EXPECT_EQ(f.symbol(f.finished().at(1).symbol), std::string(100, 'd'));
  EXPECT_EQ(f.counters()["unresolved names"], 1u);
}

TEST_F(HsaTest, NamesOfExecutablesThatCameLateAndWent) {
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                auto* queue = hsa.make_queue();
                hsa.submit(queue, several(1));  // not known yet
                const auto first = hsa.freeze({{"first.kd", kCompute}});
                hsa.submit(queue, several(1));
                hsa.wait(queue);
                hsa.destroy(first);
                hsa.submit(queue, several(1));
                hsa.freeze({{"second.kd", kCompute}});  // at the same address
                hsa.submit(queue, several(1));
                hsa.wait(queue);
              }).ok());
  const HsaFile f = file();
  const auto dispatches = f.finished();
  ASSERT_EQ(dispatches.size(), 4u);
  EXPECT_EQ(f.symbol(dispatches[0].symbol), "");
  EXPECT_EQ(f.symbol(dispatches[1].symbol), "first");
  EXPECT_EQ(f.symbol(dispatches[2].symbol), "");
  EXPECT_EQ(f.symbol(dispatches[3].symbol), "second");
  EXPECT_EQ(f.counters()["unresolved names"], 2u);
}

TEST_F(HsaTest, ManyKernelsInOneExecutable) {
  constexpr uint64_t kKernels = 30'000;
  ASSERT_TRUE(run({}, [](FakeHsa& hsa) {
                std::vector<sim::FakeSymbol> symbols;
                for (uint64_t i = 0; i < kKernels; ++i)
                  symbols.push_back({"kernel_number_" + std::to_string(i) + ".kd", 0x10000 + 64 * i});
                hsa.freeze(symbols);
                auto* queue = hsa.make_queue();
                for (uint64_t i = 0; i < kKernels; i += 1000) hsa.submit(queue, several(1, 0x10000 + 64 * i));
                hsa.wait(queue);
              }).ok());
  const HsaFile f = file();
  EXPECT_EQ(f.count(Def::kKernelSymbol), 30u) << "those that were used";
  for (uint64_t i = 0; i < 30; ++i)
    EXPECT_EQ(f.symbol(f.finished().at(i).symbol), "kernel_number_" + std::to_string(1000 * i));
}

// ---- beside another tool

constexpr char kOurs[] = LOCKSTEP_LIB_DIR "/liblockstep-hsa.so",
               kOther[] = LOCKSTEP_LIB_DIR "/liblockstep-other-hsa-tool.so";

uint64_t seen_by_other() {
  void* library = dlopen(kOther, RTLD_NOW | RTLD_NOLOAD);
  return *static_cast<std::atomic<uint64_t>*>(dlsym(library, "other_tool_seen"));
}

TEST_F(HsaTest, BehindAnotherToolItObserves) {
  Environment with = environment();
  with[0].second = std::string(kOther) + " " + kOurs;
  ASSERT_TRUE(run(
                  {},
                  [](FakeHsa& hsa) {
                    hsa.freeze(kernels_of_tests());
                    auto* queue = hsa.make_queue();
                    hsa.submit(queue, several(6));
                    hsa.wait(queue);
                    EXPECT_EQ(seen_by_other(), 6u);
                    EXPECT_EQ(hsa.counts().live_signals, 0u);
                  },
                  with)
                  .ok());
  const HsaFile f = file();
  EXPECT_EQ(f.count(Kind::kDispatch), 6u);
  EXPECT_EQ(f.count(Kind::kGpuTimes), 0u) << "no doubtful times";
  EXPECT_TRUE(f.open().empty());
  EXPECT_EQ(f.counters()["drop (observed)"], 6u);
  EXPECT_TRUE(f.note(format::kNoteHsa).starts_with("observe")) << f.note(format::kNoteHsa);
  EXPECT_TRUE(f.note(format::kNoteHsa).ends_with("use LOCKSTEP_HSA=sdk")) << "whole, with what to do";
  EXPECT_EQ(f.all<format::GpuQueueDef>(Def::kGpuQueue).at(0).state, format::QueueState::kObserved);
  f.expect_sums();
}

TEST_F(HsaTest, BelowAToolThatChainsItTimes) {
  Environment with = environment();
  with[0].second = std::string(kOurs) + " " + kOther;
  with.emplace_back("OTHER_TOOL", "chain");
  ASSERT_TRUE(run(
                  {},
                  [](FakeHsa& hsa) {
                    hsa.freeze(kernels_of_tests());
                    auto* queue = hsa.make_queue();
                    hsa.submit(queue, several(6));
                    hsa.wait(queue);
                    EXPECT_EQ(seen_by_other(), 6u);
                  },
                  with)
                  .ok());
  EXPECT_EQ(file().finished().size(), 6u);
}

// It makes the queues, and ours sees none: which a reader is told by the counters.
TEST_F(HsaTest, AToolThatTakesTheQueuesLeavesNone) {
  Environment with = environment();
  with[0].second = std::string(kOurs) + " " + kOther;
  ASSERT_TRUE(run(
                  {},
                  [](FakeHsa& hsa) {
                    hsa.freeze(kernels_of_tests());
                    auto* queue = hsa.make_queue();
                    hsa.submit(queue, several(6));
                    hsa.wait(queue);
                    EXPECT_EQ(seen_by_other(), 6u);
                  },
                  with)
                  .ok());
  const HsaFile f = file();
  EXPECT_EQ(f.counters()["queues"], 0u);
  EXPECT_EQ(f.counters()["executables"], 1u);
}

// ---- copies

TEST_F(HsaTest, CopiesByChoice) {
  Environment with = environment();
  with.emplace_back("LOCKSTEP_HSA", "copies");
  ASSERT_TRUE(run(
                  {},
                  [](FakeHsa& hsa) {
                    std::vector<char> from(1 << 20, 'a'), to(1 << 20);
                    const auto signal = hsa.make_signal();
                    ASSERT_EQ(hsa.copy(to.data(), from.data(), from.size(), signal), 0u);
                    hsa.wait(signal);
                    EXPECT_EQ(to, from);
                    EXPECT_GT(hsa.copy_times(signal).stop, hsa.copy_times(signal).start)
                        << "the program asks, too";
                    hsa.shut_down();
                  },
                  with)
                  .ok());
  const HsaFile f = file();
  const auto copy = f.one<format::QueuedCopyRecord>(Kind::kQueuedCopy);
  EXPECT_EQ(copy.bytes, 1u << 20);
  EXPECT_EQ(copy.from, format::kHostAgent);
  EXPECT_EQ(copy.to, 0u);
  const auto times = f.one<format::GpuTimesRecord>(Kind::kGpuTimes);
  EXPECT_EQ(times.clock, format::TimesClock::kSystem);
  EXPECT_GT(times.gpu_stop, times.gpu_start);
  EXPECT_EQ(f.counters()["copies recorded"], 1u);
}

TEST_F(HsaTest, OffMeansOff) {
  // With "sdk" another library of ours records, and there can be but one owner of a queue's signals.
  for (const auto& [name, value] : {std::pair{"LOCKSTEP_MODE", "off"}, std::pair{"LOCKSTEP_HSA", "off"},
                                    std::pair{"LOCKSTEP_HSA", "print,sdk"}}) {
    Environment with = environment();
    with.emplace_back(name, value);
    ASSERT_TRUE(run(
                    {},
                    [](FakeHsa& hsa) {
                      auto* queue = hsa.make_queue();
                      hsa.submit(queue, several(3));
                      hsa.wait(queue);
                      EXPECT_EQ(hsa.counts().callbacks, 0u);
                    },
                    with)
                    .ok());
    EXPECT_TRUE(run_.files().empty());
  }
}

TEST_F(HsaTest, RingRetentionKeepsTheNewestAndTheOneThatHangs) {
  Environment with = environment();
  with.emplace_back("LOCKSTEP_RETAIN", "ring:1M");
  ASSERT_TRUE(run(
                  {},
                  [](FakeHsa& hsa) {
                    hsa.freeze(kernels_of_tests());
                    auto *stuck = hsa.make_queue(), *queue = hsa.make_queue(1024);
                    hsa.submit(stuck, {FakeHsa::kernel(kReduce, sim::kNever)});
                    for (int i = 0; i < 2000; ++i) hsa.submit(queue, several(20));
                    hsa.wait(queue);
                  },
                  with)
                  .ok());
  const HsaFile f = file();
  EXPECT_LE(f.size(), size_t{2} << 20);
  EXPECT_GT(f.lost(capture::kLoss_overwritten), 0u);
  const auto names = f.records(Kind::kDispatch);
  const bool has_stuck = std::any_of(names.begin(), names.end(), [&](const Entry& entry) {
    return f.symbol(entry.as<format::DispatchRecord>().symbol) == "ncclDevKernel_Generic_1";
  });
  EXPECT_TRUE(has_stuck) << "what is on its way moves on with the newest";
}

TEST_F(HsaTest, CountersArePrintedOnceAfterTheDrainIfAskedFor) {
  Environment with = environment();
  with.emplace_back("LOCKSTEP_HSA", "print");
  const std::string path = run_.path() + ".stderr";
  ASSERT_TRUE(run(
                  {},
                  [&](FakeHsa& hsa) {
                    ASSERT_NE(freopen(path.c_str(), "w", stderr), nullptr);
                    hsa.freeze(kernels_of_tests());
                    auto* queue = hsa.make_queue();
                    hsa.submit(queue, several(9));
                    hsa.wait(queue);
                    hsa.shut_down();
                  },
                  with)
                  .ok());
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(text.find("  recorded OK:         9\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("=== lockstep diagnostic"), text.rfind("=== lockstep diagnostic"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lockstep::test
