// SPDX-License-Identifier: Apache-2.0
// Two of CUPTI's users in one process: each gets what it would get alone.
#include "capture/cuda/sharing.h"

#include <atomic>
#include <thread>

#include "capture/core/clock.h"
#include "capture/cuda/cuda_test.h"
#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

constexpr uint32_t kExternalCorrelation = 39;
const std::vector<uint32_t> kAllKinds = {cupti::kCopy,    cupti::kSet,    cupti::kConcurrentKernel,
                                         cupti::kRuntime, cupti::kDriver, kExternalCorrelation};

class Sharing : public CudaCapture {};

// A step of a training loop: kernels by the runtime and by the driver, a copy, a fill, and what a profiler
// adds.
void step(const Gpu& gpu) {
  for (int i = 0; i < 20; ++i)
    gpu.run({.name = "compute", .driver_call = cupti::kLaunchKernel, .runtime_call = 211});
  for (int i = 0; i < 5; ++i) gpu.run({.name = "nccl", .driver_call = cupti::kLaunchKernelEx});
  gpu.run({.name = "replay",
           .driver_call = cupti::kGraphLaunch,
           .runtime_call = cupti::kRuntimeGraphLaunch,
           .graph = 1,
           .node = 1});
  gpu.copy(cupti::kCopy, 64);
  gpu.copy(cupti::kSet, 64);
  gpu.other(kExternalCorrelation);
}

using Counts = std::map<std::pair<uint32_t, uint32_t>, int>;

// What a profiler sees of `sessions` sessions with steps before, between and after, with our library in the
// process or without.
std::vector<Counts> profile(const Environment& environment, int sessions, bool with_us,
                            const std::vector<uint32_t>& kinds) {
  int pipes[2];
  EXPECT_EQ(pipe(pipes), 0);
  EXPECT_TRUE(run_child(environment, [&] {
                Gpu gpu;
                if (with_us) InitializeInjection();
                Profiler profiler(gpu);
                FILE* out = fdopen(pipes[1], "w");
                Counts before;
                for (int session = 0; session < sessions; ++session) {
                  step(gpu);
                  sleep_ms(2);
                  profiler.start(kinds);
                  for (int i = 0; i < 30; ++i) step(gpu);
                  profiler.stop();
                  sleep_ms(2);
                  Counts after = profiler.counts();
                  for (const auto& [key, count] : after) {
                    if (const int here = count - before[key]; here != 0)
                      fprintf(out, "%d %u %u %d\n", session, key.first, key.second, here);
                  }
                  before = after;
                }
                step(gpu);
                EXPECT_EQ(profiler.strangers(), 0);
                fclose(out);
              }).ok());
  close(pipes[1]);
  FILE* in = fdopen(pipes[0], "r");
  std::vector<Counts> all(static_cast<size_t>(sessions));
  int session, count;
  uint32_t kind, call;
  while (fscanf(in, "%d %u %u %d", &session, &kind, &call, &count) == 4)
    all[static_cast<size_t>(session)][{kind, call}] = count;
  fclose(in);
  return all;
}

TEST_F(Sharing, AProfilerThatAskedForTurnsGetsItsRecordsWithoutFlushing) {
  record([](const Gpu& gpu) {
    Profiler profiler(gpu);
    profiler.start({cupti::kConcurrentKernel});
    ASSERT_EQ(cuptiActivityFlushPeriod(20), cupti::kSuccess);
    gpu.run({.name = "compute", .driver_call = cupti::kLaunchKernel, .runtime_call = 211});
    for (int tries = 0; tries < 500 && profiler.kernels() == 0; ++tries) sleep_ms(20);
    EXPECT_EQ(profiler.kernels(), 1);
    profiler.stop();
  });
}

TEST_F(Sharing, AProfilerSeesTheSameWithUsAsWithout) {
  const std::vector<std::vector<uint32_t>> choices = {kAllKinds,
                                                      {cupti::kConcurrentKernel},
                                                      {cupti::kSerialKernel},
                                                      {cupti::kRuntime, cupti::kConcurrentKernel},
                                                      {cupti::kDriver},
                                                      {cupti::kCopy, kExternalCorrelation}};
  for (const auto& kinds : choices) {
    RunDirectory run;
    Environment environment = settings();
    environment[0].second = run.path();
    const std::vector<Counts> with = profile(environment, 2, true, kinds);
    const std::vector<Counts> without = profile(environment, 2, false, kinds);
    ASSERT_FALSE(without[0].empty());
    EXPECT_EQ(with, without) << kinds.size() << " kinds, the first " << kinds[0];
    EXPECT_EQ(without[0], without[1]);
    const LksFile file = run.file();
    EXPECT_EQ(file.count(Kind::kKernel), 63u * 26) << "before, during, between and after";
    EXPECT_EQ(file.count(Kind::kLaunchCall), 63u * 6);
    EXPECT_EQ(file.lost(), 0u);
  }
}

// Kernels wait on the GPU when a profiler comes, and when it goes. Alone it would see those that were
// launched in between.
TEST_F(Sharing, AProfilerSeesWhatWasLaunchedInItsTime) {
  LksFile file = record([](const Gpu& gpu) {
    gpu.load_driver();
    Profiler profiler(gpu);
    profiler.start(kAllKinds);  // one before
    profiler.stop();
    std::vector<uint32_t> before, during, after;
    for (int i = 0; i < 10; ++i) before.push_back(gpu.launch({.name = "before"}));
    profiler.start(kAllKinds);
    for (int i = 0; i < 7; ++i) during.push_back(gpu.launch({.name = "during"}));
    cuptiActivityDisable(cupti::kConcurrentKernel);
    for (int i = 0; i < 5; ++i) after.push_back(gpu.launch({.name = "after"}));
    sleep_ms(1);
    for (const auto& group : {before, during, after}) {
      for (const uint32_t correlation : group) gpu.finish(correlation, gpu.now(), gpu.now() + 10);
    }
    profiler.stop();
    EXPECT_EQ(profiler.kernels(), 7);
    EXPECT_EQ((profiler.counts()[{cupti::kDriver, cupti::kDriverGetVersion}]), 0) << "ours";
  });
  EXPECT_EQ(file.count(Kind::kKernel), 22u);
}

TEST_F(Sharing, AProfilerOfSeveralContextsIsServedUntilTheLastIsOff) {
  int contexts[20];
  record([&](const Gpu& gpu) {
    Profiler profiler(gpu);
    profiler.start({});
    const auto run = [&](int kernels) {
      for (int i = 0; i < kernels; ++i) gpu.run({.name = "compute"});
      sleep_ms(1);
    };
    for (int& context : contexts) cuptiActivityEnableContext(&context, cupti::kSet);
    cuptiActivityEnableContext(&contexts[0], cupti::kConcurrentKernel);
    cuptiActivityEnableContext(&contexts[1], cupti::kConcurrentKernel);
    cuptiActivityEnableContext(&contexts[1], cupti::kConcurrentKernel);
    run(3);
    cuptiActivityDisableContext(&contexts[0], cupti::kConcurrentKernel);
    run(2);
    cuptiActivityDisableContext(&contexts[1], cupti::kConcurrentKernel);
    run(4);
    profiler.flush();
    // One that is left out of all.
    cuptiActivityEnable(cupti::kConcurrentKernel);
    cuptiActivityDisableContext(&contexts[0], cupti::kConcurrentKernel);
    run(7);
    cuptiActivityDisable(cupti::kConcurrentKernel);
    run(4);
    profiler.flush();
    EXPECT_EQ(profiler.kernels(), 3 + 2 + 7);
  });
}

TEST_F(Sharing, AProfilerThatIsThereFirstKeepsItsRecords) {
  EXPECT_TRUE(run_child(settings(), [] {
                Gpu gpu;
                Profiler profiler(gpu);
                profiler.start(kAllKinds);
                step(gpu);
                InitializeInjection();
                step(gpu);
                profiler.stop();
                EXPECT_EQ(profiler.kernels(), 52);
                EXPECT_EQ(profiler.strangers(), 0);
                step(gpu);
              }).ok());
  EXPECT_GE(run_.file().count(Kind::kKernel), 52u) << "those since CUDA started, and what CUPTI still held";
}

TEST_F(Sharing, AClockOfTheProfilersMovesNoTime) {
  // A clock of its own, in units of its own, between two sessions.
  static auto odd_clock = []() -> uint64_t {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec)) * 5 / 2;
  };
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  LksFile file = record([&](const Gpu& gpu) {
    sleep_ms(250);
    uint64_t ticks[3];
    for (int round = 0; round < 3; ++round) {
      if (round == 1) {
        EXPECT_EQ(cuptiActivityRegisterTimestampCallback(odd_clock), cupti::kSuccess);
      }
      ticks[round] = capture::read_ticks();
      gpu.run({.name = "one"});
      sleep_ms(150);
    }
    EXPECT_EQ(write(pipes[1], ticks, sizeof ticks), static_cast<ssize_t>(sizeof ticks));
  });
  uint64_t ticks[3];
  ASSERT_EQ(read(pipes[0], ticks, sizeof ticks), static_cast<ssize_t>(sizeof ticks));
  const auto kernels = file.all<format::KernelRecord>(Kind::kKernel);
  ASSERT_EQ(kernels.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const double late = static_cast<double>(static_cast<int64_t>(kernels[i].head.start - ticks[i])) * 1e9 /
                        static_cast<double>(file.header().tick_hz);
    EXPECT_GE(late, -50e3) << i;
    EXPECT_LE(late, 20e6) << i << ": the machine may have been busy";
  }
}

TEST_F(Sharing, DetachingOfAProfilerLeavesUs) {
  LksFile file = record([](const Gpu& gpu) {
    void* subscriber = nullptr;
    EXPECT_EQ(cuptiSubscribe(&subscriber, nullptr, nullptr), cupti::kSuccess);
    Profiler profiler(gpu);
    profiler.start(kAllKinds);
    step(gpu);
    EXPECT_EQ(cuptiFinalize(), cupti::kSuccess);
    EXPECT_EQ(profiler.kernels(), 26);
    EXPECT_EQ(gpu.state().finalized, 0u);
    EXPECT_EQ(gpu.state().subscribers, 0u) << "it thinks it is gone";
    step(gpu);
    EXPECT_EQ(cuptiSubscribe(&subscriber, nullptr, nullptr), cupti::kSuccess) << "and comes again";
    profiler.start(kAllKinds);
    step(gpu);
    profiler.stop();
    EXPECT_EQ(profiler.kernels(), 52);
  });
  EXPECT_EQ(file.count(Kind::kKernel), 78u);
}

TEST_F(Sharing, AProfilerThatIsNeverStoppedIsNotCalledAtExit) {
  LksFile file = record([](const Gpu& gpu) {
    static auto* profiler = new Profiler(gpu);
    profiler->start(kAllKinds);
    for (int i = 0; i < 30; ++i) step(gpu);
    atexit(Profiler::go);  // as the destructors of its library, before ours
  });
  EXPECT_EQ(file.count(Kind::kKernel), 30u * 26);
}

bool flushes_last = false;
__attribute__((destructor)) void flush_last() {
  if (flushes_last) cuptiActivityFlushAll(cupti::kFlushForced);
}

// A library whose destructor flushes what its profiler has, when the profiler itself is gone.
TEST_F(Sharing, AFlushAfterTheEndCallsNobody) {
  LksFile file = record([](const Gpu& gpu) {
    static auto* profiler = new Profiler(gpu);
    profiler->start(kAllKinds);
    step(gpu);
    atexit(Profiler::go);
    flushes_last = true;
  });
  EXPECT_EQ(file.count(Kind::kKernel), 26u);
}

TEST_F(Sharing, ABufferTakesNoMoreRecordsThanItsOwnerSaid) {
  for (const size_t most : {size_t{0}, size_t{3}}) {
    RunDirectory run;
    Environment environment = settings();
    environment[0].second = run.path();
    EXPECT_TRUE(run_child(environment, [&] {
                  Gpu gpu;
                  InitializeInjection();
                  Profiler::take(most);
                  Profiler profiler(gpu);
                  profiler.start({cupti::kConcurrentKernel});
                  for (int i = 0; i < 100; ++i) gpu.run({.name = "compute"});
                  profiler.stop();
                  EXPECT_EQ(profiler.kernels(), 100);
                  if (most != 0)
                    EXPECT_EQ(profiler.most_in_a_buffer(), 3);
                  else
                    EXPECT_GT(profiler.most_in_a_buffer(), 3) << "0: as many as there is room for";
                }).ok());
  }
}

// We take copies all the time; the profiler gets those of its own.
TEST_F(Sharing, CopiesBetweenGpusAreTheProfilersInItsTime) {
  LksFile file = record(
      [](const Gpu& gpu) {
        Profiler profiler(gpu);
        auto copies = [&](int count) {
          for (int i = 0; i < count; ++i) gpu.copy(cupti::kPeerCopy, 64);
          sleep_ms(2);
        };
        copies(3);
        profiler.start({cupti::kPeerCopy});
        copies(5);
        profiler.stop();
        copies(2);
        EXPECT_EQ((profiler.counts()[{cupti::kPeerCopy, 0}]), 5);
      },
      settings("default", "copies"));
  EXPECT_EQ(file.count(Kind::kCopy), 10u);
}

TEST_F(Sharing, DetachingWhileWeRestLeavesNothingBehind) {
  LksFile file = record([&](const Gpu& gpu) {
    step(gpu);
    ask(run_.files().at(0), format::Mode::kLite);
    const double end = seconds_now() + kPatienceSeconds;
    while (gpu.state().enabled_kinds != 0 && seconds_now() < end) sleep_ms(2);
    Profiler profiler(gpu);
    for (int session = 1; session <= 2; ++session) {
      profiler.start(kAllKinds);
      step(gpu);
      profiler.stop();
      EXPECT_EQ(profiler.kernels(), 26 * session);
      EXPECT_EQ(cuptiFinalize(), cupti::kSuccess);
      EXPECT_EQ(gpu.state().finalized, static_cast<uint32_t>(session));
    }
    ask(run_.files().at(0), format::Mode::kDefault);
    while (gpu.state().enabled_kinds == 0 && seconds_now() < end) sleep_ms(2);
    step(gpu);
  });
  EXPECT_EQ(file.count(Kind::kKernel), 52u);
}

TEST_F(Sharing, SingleCallsOfAProfilerAreItsFromOnToOff) {
  static constexpr uint32_t kSomeCall = 500;
  record([](const Gpu& gpu) {
    Profiler profiler(gpu);
    profiler.start({cupti::kConcurrentKernel});
    cuptiActivityEnableDriverApi(kSomeCall, 1);
    cuptiActivityEnableDriverApi(cupti::kLaunchKernel, 1);
    for (int i = 0; i < 3; ++i) gpu.call(kSomeCall);
    step(gpu);
    sleep_ms(1);
    cuptiActivityEnableDriverApi(kSomeCall, 0);
    cuptiActivityEnableDriverApi(cupti::kLaunchKernel, 0);
    sleep_ms(1);
    gpu.call(kSomeCall);
    step(gpu);
    profiler.stop();
    EXPECT_EQ((profiler.counts()[{cupti::kDriver, kSomeCall}]), 3);
    EXPECT_EQ((profiler.counts()[{cupti::kDriver, cupti::kLaunchKernel}]), 20);
    EXPECT_EQ((profiler.counts()[{cupti::kDriver, cupti::kLaunchKernelEx}]), 0) << "ours";
    EXPECT_EQ(gpu.state().enabled_calls, 4u);
  });
}

TEST_F(Sharing, ThreadNumbersAreThoseAProfilerChose) {
  LksFile file = record([](const Gpu& gpu) {
    gpu.run({.name = "nccl", .driver_call = cupti::kLaunchKernelEx});
    cuptiActivityFlushAll(0);
    EXPECT_EQ(cuptiSetThreadIdType(cupti::kThreadIdSystem), cupti::kSuccess);
    gpu.run({.name = "nccl", .driver_call = cupti::kLaunchKernelEx});
  });
  const auto calls = file.all<format::LaunchCallRecord>(Kind::kLaunchCall);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].head.flags & format::kFlagSystemThread, 0);
  EXPECT_NE(calls[1].head.flags & format::kFlagSystemThread, 0);
  EXPECT_EQ(calls[1].thread, static_cast<uint32_t>(file.header().pid));
}

TEST_F(Sharing, StandsAsideWhileAnotherToolHoldsCuptiAndComesBack) {
  EXPECT_TRUE(run_child(settings(), [] {
                Gpu gpu;
                // Not through us: a debugger, or a profiler that found CUPTI by itself.
                void* subscriber = nullptr;
                gpu.real<cupti::Result (*)(void**, void*, void*)>("cuptiSubscribe")(&subscriber, nullptr,
                                                                                    nullptr);
                InitializeInjection();
                EXPECT_FALSE(gpu.state().ours_registered);
                EXPECT_EQ(gpu.state().enabled_kinds, 0u);
                gpu.run({.name = "unseen"});
                gpu.real<cupti::Result (*)(void*)>("cuptiUnsubscribe")(subscriber);
                const double end = seconds_now() + kPatienceSeconds;
                while (gpu.state().enabled_kinds == 0 && seconds_now() < end) sleep_ms(5);
                gpu.run({.name = "seen"});
              }).ok());
  const LksFile later = run_.file();
  EXPECT_EQ(later.count(Kind::kKernel), 1u);
  EXPECT_EQ(note(later, format::kNoteGpuRecords), "kernels, CUPTI 130001");
}

TEST_F(Sharing, LiteAndOffAskCuptiForNothing) {
  for (const auto& [mode, cuda] : {std::pair{"off", "kernels"}, {"default", "off"}, {"lite", "kernels"}}) {
    EXPECT_TRUE(run_child(settings(mode, cuda), [] {
                  Gpu gpu;
                  EXPECT_EQ(InitializeInjection(), 1);
                  EXPECT_FALSE(gpu.state().ours_registered);
                  EXPECT_EQ(gpu.state().enabled_kinds, 0u);
                  Profiler profiler(gpu);
                  profiler.start(kAllKinds);
                  step(gpu);
                  profiler.stop();
                  EXPECT_EQ(profiler.kernels(), 26);
                }).ok());
    // In lite there is a file all the same, by which it can be asked for more.
    EXPECT_EQ(run_.files().size(), std::string(mode) == "lite" ? 1u : 0u) << mode;
  }
  EXPECT_EQ(run_.file().count(Kind::kKernel), 0u);
}

TEST_F(Sharing, TheModeCanChangeWhileItRuns) {
  EXPECT_TRUE(run_child(settings("lite"), [&] {
                Gpu gpu;
                InitializeInjection();
                auto wait_for = [&](bool on) {
                  const double end = seconds_now() + kPatienceSeconds;
                  while ((gpu.state().enabled_kinds != 0) != on && seconds_now() < end) sleep_ms(2);
                  EXPECT_EQ(gpu.state().enabled_kinds != 0, on);
                };
                const std::string file = run_.files().at(0);
                for (int round = 0; round < 2; ++round) {
                  step(gpu);
                  ask(file, format::Mode::kDeep);
                  wait_for(true);
                  step(gpu);
                  ask(file, format::Mode::kLite);
                  wait_for(false);
                }
              }).ok());
  EXPECT_EQ(run_.file().count(Kind::kKernel), 52u);
}

TEST_F(Sharing, BuffersAreUsedAgain) {
  constexpr int kKernels = kSanitized ? 20'000 : 200'000;
  LksFile file = record([&](const Gpu& gpu) {
    const LiveHeader live(run_);
    constexpr uint64_t kBytes = sizeof(format::KernelRecord) + sizeof(format::LaunchCallRecord);
    for (int i = 0; i < kKernels; ++i) {
      if (i % 1000 == 0) live.wait_for_room(static_cast<uint64_t>(i + 2000) * kBytes);
      gpu.run({.name = "one of many", .driver_call = cupti::kLaunchKernelEx});
      EXPECT_LE(gpu.state().buffers_out, 2u);
    }
    EXPECT_EQ(gpu.state().refused, 0u);
  });
  EXPECT_EQ(file.count(Kind::kKernel), static_cast<size_t>(kKernels));
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(Sharing, WhatCuptiDropsIsCountedForBoth) {
  if (kSanitized) GTEST_SKIP() << "one thread fills all of CUPTI's buffers, for minutes";
  LksFile file = record([](const Gpu& gpu) {
    Profiler profiler(gpu);
    profiler.start({cupti::kConcurrentKernel});
    // Kernels that do not end hold their buffers, until there are no more.
    std::vector<uint32_t> open;
    while (gpu.state().dropped < 10) open.push_back(gpu.launch({.name = "stuck"}));
    const uint64_t now = gpu.now();
    for (const uint32_t correlation : open) gpu.finish(correlation, now, now + 10);
    profiler.stop();
    size_t dropped = 0;
    EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), cupti::kSuccess);
    EXPECT_EQ(dropped, 10u);
  });
  EXPECT_EQ(file.lost(capture::kLoss_gpu_dropped), 10u);
}

TEST_F(Sharing, ThreadsLaunchWhileAProfilerComesAndGoes) {
  constexpr int kThreads = 4, kEach = 2000;
  LksFile file = record([](const Gpu& gpu) {
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < kEach; ++k) gpu.run({.name = "k", .driver_call = cupti::kLaunchKernelEx});
      });
    }
    std::thread profiler_thread([&] {
      Profiler profiler(gpu);
      while (!over) {
        profiler.start(kAllKinds);
        sleep_ms(1);
        profiler.stop();
      }
      EXPECT_EQ(profiler.strangers(), 0);
      cuptiActivityFlushAll(cupti::kFlushForced);
    });
    for (std::thread& thread : threads) thread.join();
    over = true;
    profiler_thread.join();
  });
  // Those that were under way at a forced flush have no times.
  EXPECT_EQ(file.count(Kind::kKernel) + file.lost(capture::kLoss_gpu_unknown),
            static_cast<size_t>(kThreads * kEach));
}

TEST_F(Sharing, AKilledProcessKeepsWhatWasFlushed) {
  Child child = Child::start(settings(), [] {
    Gpu gpu;
    InitializeInjection();
    for (;;) {
      gpu.run({.name = "k"});
      sleep_ms(1);
    }
  });
  const double end = seconds_now() + kPatienceSeconds;
  const auto kernels = [&] {
    return run_.files().empty() ? 0 : LksFile(run_.files()[0]).count(Kind::kKernel);
  };
  while (kernels() < 50 && seconds_now() < end) sleep_ms(10);
  kill(child.pid(), SIGKILL);
  EXPECT_EQ(child.wait().signal, SIGKILL);
  const LksFile file = run_.file();
  EXPECT_GE(file.count(Kind::kKernel), 50u);
  EXPECT_EQ(file.state(), format::FileState::kOpen);
}

TEST_F(Sharing, AForkedChildWritesNothing) {
  LksFile file = record([](const Gpu& gpu) {
    gpu.run({.name = "parent"});
    cuptiActivityFlushAll(0);
    const pid_t child = fork();
    if (child == 0) {
      gpu.run({.name = "child"});
      cuptiActivityFlushAll(0);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    gpu.run({.name = "parent"});
  });
  EXPECT_EQ(file.count(Kind::kKernel), 2u);
}

}  // namespace
}  // namespace lockstep::test
