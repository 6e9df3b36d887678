// SPDX-License-Identifier: Apache-2.0
// The built library as a client of a stub of rocprofiler-sdk. No real SDK was tried.
#include <dlfcn.h>

#include <thread>

#include "capture/hsa/hsa_test.h"
#include "sim/rocprofiler/stub_sdk.h"

namespace lockstep::test {
namespace {

using format::Def;
using format::Kind;
using sim::StubSdk;
using sim::StubSdkOptions;

constexpr char kClient[] = LOCKSTEP_LIB_DIR "/liblockstep-rocp.so",
               kSdk[] = LOCKSTEP_LIB_DIR "/stub-sdk/librocprofiler-sdk.so";

class SdkTest : public ::testing::Test {
 protected:
  // `clients`: how many the SDK is to go on with.
  template <class Work>
  void run(const StubSdkOptions& options, int clients, Work work, const std::string& mode = "default",
           const std::string& setting = "") {
    const Environment with{{"ROCP_TOOL_LIBRARIES", std::string(kClient) + ":"},
                           {"LOCKSTEP_DIR", run_.path()},
                           {"LOCKSTEP_MODE", mode},
                           {"LOCKSTEP_HSA", setting}};
    ASSERT_TRUE(run_child(with, [&] {
                  void* library = dlopen(kSdk, RTLD_NOW);
                  ASSERT_NE(library, nullptr) << dlerror();
                  const auto& sdk = *static_cast<const StubSdk*>(dlsym(library, "stub_sdk"));
                  EXPECT_EQ(sdk.start(options), clients);
                  work(sdk);
                }).ok());
  }
  HsaFile file() const {
    EXPECT_EQ(run_.files().size(), 1u);
    HsaFile file(run_.files().empty() ? "" : run_.files()[0]);
    EXPECT_TRUE(file.problems().empty()) << file.problems().front();
    return file;
  }
  RunDirectory run_;
};

void load_kernels(const StubSdk& sdk) {
  sdk.load_kernel(1, "_Z7computePf.kd");
  sdk.load_kernel(2, "ncclDevKernel_Generic_1.kd");
}

TEST_F(SdkTest, KernelsWithNamesTimesAndPlaces) {
  run({}, 1, [](const StubSdk& sdk) {
    load_kernels(sdk);
    const uint64_t first = sdk.launch(1, 7, 1), second = sdk.launch(1, 7, 2), other = sdk.launch(0, 9, 3);
    const uint64_t now = sdk.now();
    // Ends come on another thread, in any order.
    std::thread([&] {
      sdk.end(second, now + 3000, now + 5000);
      sdk.end(first, now + 1000, now + 2000);
      sdk.end(other, now + 1000, now + 4000);
    }).join();
  });
  const HsaFile f = file();
  EXPECT_EQ(f.header().source, format::Source::kHsa);
  const auto dispatches = f.finished();
  ASSERT_EQ(dispatches.size(), 3u);
  EXPECT_EQ(f.symbol(dispatches[0].symbol), "_Z7computePf");
  EXPECT_EQ(f.symbol(dispatches[1].symbol), "ncclDevKernel_Generic_1");
  EXPECT_EQ(dispatches[2].symbol, 0u);
  EXPECT_EQ(dispatches[1].sequence, 2u);
  EXPECT_EQ(dispatches[1].agent, 1u);
  EXPECT_EQ(dispatches[0].queue, dispatches[1].queue);
  EXPECT_NE(dispatches[0].queue, dispatches[2].queue);
  EXPECT_EQ(dispatches[0].grid[0], 2048u);
  EXPECT_EQ(dispatches[0].group[0], 256u);
  const auto times = f.all<format::GpuTimesRecord>(Kind::kGpuTimes);
  ASSERT_EQ(times.size(), 3u);
  EXPECT_EQ(times[0].gpu_stop - times[0].gpu_start, 2000u);
  ASSERT_EQ(f.count(Def::kGpuAgent), 2u);
  const auto agent = f.all<format::GpuAgentDef>(Def::kGpuAgent)[1];
  EXPECT_STREQ(agent.pci, "0000:12:00.0");
  EXPECT_STREQ(agent.model, "AMD Instinct MI300X");
  EXPECT_EQ(agent.tick_hz, 1'000'000'000u);
  EXPECT_GE(f.count(Def::kGpuClock), 2u);
  EXPECT_EQ(f.count(Def::kGpuQueue), 2u);
  EXPECT_EQ(f.counters()["unresolved names"], 1u);
  EXPECT_EQ(f.counters()["queues"], 2u);
  f.expect_sums();
  EXPECT_EQ(f.note(format::kNoteGpuRecords), "kernels, rocprofiler-sdk 1.0.0");
}

TEST_F(SdkTest, WhatNeverEndedStaysOpenAndBadStampsAreCounted) {
  run({.version = 10300}, 1, [](const StubSdk& sdk) {
    load_kernels(sdk);
    sdk.launch(0, 7, 2);
    sdk.end(sdk.launch(0, 7, 1), 0, 0);
    sdk.end(sdk.launch(0, 7, 1), 20, 10);
  });
  const HsaFile f = file();
  ASSERT_EQ(f.open().size(), 1u);
  EXPECT_EQ(f.symbol(f.open()[0].symbol), "ncclDevKernel_Generic_1");
  EXPECT_EQ(f.counters()["unfinished"], 1u);
  EXPECT_EQ(f.counters()["drop (ts fail)"], 1u);
  EXPECT_EQ(f.counters()["drop (ts invalid)"], 1u);
  f.expect_sums();
}

TEST_F(SdkTest, LiteKeepsRcclsKernels) {
  run(
      {}, 1,
      [](const StubSdk& sdk) {
        load_kernels(sdk);
        for (uint64_t i = 0; i < 10; ++i) {
          const uint64_t own = sdk.launch(0, 7, 1 + i % 2);
          EXPECT_EQ(own != 0, i % 2 == 1);
          sdk.end(own, sdk.now() - 1000, sdk.now());
        }
      },
      "lite");
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 5u);
  EXPECT_EQ(f.counters()["drop (mode)"], 5u);
  f.expect_sums();
}

TEST_F(SdkTest, FromSeveralThreadsOnManyQueues) {
  constexpr uint64_t kThreads = 4, kEach = 5000;
  run({}, 1, [](const StubSdk& sdk) {
    load_kernels(sdk);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&sdk, t] {
        for (uint64_t i = 0; i < kEach; ++i)
          sdk.end(sdk.launch(0, (t + i) % 300, 1), sdk.now() - 1000, sdk.now());
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const HsaFile f = file();
  EXPECT_EQ(f.counters()["packets"], kThreads * kEach);
  EXPECT_EQ(f.counters()["queues"], 256u);
  EXPECT_EQ(f.finished().size() + f.counters()["drop (no room)"] + f.counters()["unwritten"],
            kThreads * kEach);
  EXPECT_GT(f.finished().size(), kThreads * kEach / 2);
  f.expect_sums();
}

TEST_F(SdkTest, WhatIsNotKnownOrRefusedIsLeftAloneAndSaid) {
  const struct {
    StubSdkOptions options;
    const char* says;
  } cases[] = {{{.version = 500}, "rocprofiler-sdk 0.5 is not known, only 1.x is"},
               {{.version = 20000}, "rocprofiler-sdk 2.0 is not known, only 1.x is"},
               {{.gpus = 0}, "no GPU in this process"},
               {{.context_status = 1}, "rocprofiler-sdk refuses a context"}};
  for (const auto& one : cases) {
    RunDirectory run;
    const Environment with{{"ROCP_TOOL_LIBRARIES", std::string(kClient) + ":"}, {"LOCKSTEP_DIR", run.path()}};
    ASSERT_TRUE(run_child(with, [&] {
                  const auto& sdk = *static_cast<const StubSdk*>(dlsym(dlopen(kSdk, RTLD_NOW), "stub_sdk"));
                  EXPECT_EQ(sdk.start(one.options), 0);
                  EXPECT_EQ(sdk.launch(0, 7, 1), 0u);
                }).ok());
    const HsaFile f(run.files().at(0));
    EXPECT_EQ(f.note(format::kNoteHsa), one.says);
    EXPECT_EQ(f.count(Kind::kDispatch), 0u);
  }
}

TEST_F(SdkTest, RangesOfRoctxByChoice) {
  for (const bool are_wanted : {false, true}) {
    SCOPED_TRACE(are_wanted);
    std::filesystem::remove_all(run_.path());
    run(
        {}, 1,
        [](const StubSdk& sdk) {
          sdk.push("step");
          sdk.push("forward");
          const uint64_t started = sdk.start_range("transfer");
          sdk.pop();
          std::thread([&] { sdk.stop_range(started); }).join();
          sdk.pop();
          sdk.stop_range(77);              // never started
          sdk.stop_range(started + 1024);  // its place was another's
          sdk.start_range("open");
        },
        "default", are_wanted ? "ranges" : "");
    const HsaFile f = file();
    const auto ranges = f.all<format::RangeRecord>(Kind::kRange);
    ASSERT_EQ(ranges.size(), are_wanted ? 4u : 0u);
    if (!are_wanted) continue;
    EXPECT_EQ(ranges[0].range, format::RangeKind::kNested);
    EXPECT_EQ(ranges[2].range, format::RangeKind::kFree);
    EXPECT_NE(ranges[1].head.stop_after, 0u);
    const auto late = f.one<format::StateRecord>(Kind::kState);
    EXPECT_EQ(late.head.link, format::kStateStop) << "of the one that another thread stopped";
    EXPECT_EQ(late.target, f.records(Kind::kRange)[2].handle());
    EXPECT_GT(ranges[0].head.stop_after, ranges[1].head.stop_after) << "the outer one";
    EXPECT_EQ(ranges[3].head.stop_after, 0u) << "never stopped";
    EXPECT_EQ(f.lost(), 0u);
  }
}

TEST_F(SdkTest, MoreStartedRangesThanThereIsRoomForAreCounted) {
  run(
      {}, 1,
      [](const StubSdk& sdk) {
        for (int i = 0; i < 2000; ++i) sdk.start_range("never stopped");
      },
      "default", "ranges");
  const HsaFile f = file();
  EXPECT_EQ(f.count(Kind::kRange), 1024u);
  EXPECT_EQ(f.lost(), 2000u - 1024u) << "counted";
}

TEST_F(SdkTest, OffMeansOff) {
  run(
      {}, 0, [](const StubSdk& sdk) { EXPECT_EQ(sdk.launch(0, 7, 1), 0u); }, "default", "off");
  EXPECT_TRUE(run_.files().empty());
}

TEST_F(SdkTest, AForkedChildRecordsNothingAndEnds) {
  run({}, 1, [](const StubSdk& sdk) {
    load_kernels(sdk);
    sdk.end(sdk.launch(0, 7, 1), sdk.now() - 1000, sdk.now());
    const pid_t child = fork();
    if (child == 0) {
      sdk.launch(0, 7, 1);
      exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    sdk.end(sdk.launch(0, 7, 1), sdk.now() - 1000, sdk.now());
  });
  EXPECT_EQ(file().finished().size(), 2u);
}

}  // namespace
}  // namespace lockstep::test
