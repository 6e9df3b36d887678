// SPDX-License-Identifier: Apache-2.0
// Hosts B and C: the built library in Debian's own ROCr and HIP 5.2.3, on the software device of sim/hsa.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "capture/hsa/hsa_test.h"
#include "tests/support/process.h"
#include "tests/support/sanitizers.h"

namespace lockstep::test {
namespace {

constexpr char kOurs[] = LOCKSTEP_LIB_DIR "/liblockstep-hsa.so",
               kOther[] = LOCKSTEP_LIB_DIR "/liblockstep-other-hsa-tool.so",
               kDevice[] = LOCKSTEP_LIB_DIR "/software-gpu",
               kRocm[] = LOCKSTEP_SOURCE_DIR "/build/rocm/usr/lib/x86_64-linux-gnu",
               kSystem[] = "/usr/lib/x86_64-linux-gnu";

bool is_unpacked(const std::string& library) {
  return std::filesystem::exists(std::string(kRocm) + "/" + library);
}
bool is_there(const std::string& library) {
  return is_unpacked(library) || std::filesystem::exists(std::string(kSystem) + "/" + library);
}

class RocrTest : public OneFileTest {
 protected:
  void SetUp() override {
    if (kThreadSanitizer) GTEST_SKIP() << "the runtime's own threads and atomics are not seen by it";
    if (!is_there("libhsa-runtime64.so.1"))
      GTEST_SKIP() << "libhsa-runtime64-1 is not there (tools/setup --test unpacks it)";
  }
  std::map<std::string, std::string> surroundings(std::map<std::string, std::string> environment) const {
    environment.try_emplace("HSA_TOOLS_LIB", kOurs);
    environment.try_emplace("LOCKSTEP_DIR", run_.path());
    environment["ASAN_OPTIONS"] = "detect_leaks=0";  // of a runtime that is not ours
    std::string& path = environment["LD_LIBRARY_PATH"];
    path += (path.empty() ? "" : ":") + std::string(kDevice) + ":" + kRocm;
    return environment;
  }
  nlohmann::json run(std::vector<std::string> argv, std::map<std::string, std::string> environment = {}) {
    argv[0] = LOCKSTEP_BIN_DIR "/" + argv[0];
    Surroundings around;
    around.folder = run_.path();
    around.environment = surroundings(std::move(environment));
    const Finished finished = Process(argv, around).wait();
    EXPECT_EQ(finished.code, 0) << finished;
    EXPECT_EQ(finished.err.find("leaked"), std::string::npos)
        << "the runtime says so of signals: " << finished.err;
    return nlohmann::json::parse(finished.out, nullptr, false);
  }
};

TEST_F(RocrTest, EveryDispatchIsRecorded) {
  run({"lockstep-rocr-job", "--dispatches", "20000"});
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size() + f.counters()["drop (sig pool)"] + f.counters()["drop (no room)"], 20000u);
  EXPECT_GT(f.finished().size(), 19000u);
  f.expect_sums();
  EXPECT_EQ(f.note(format::kNoteGpuRecords), "kernels, HSA tables of 1016 and 400 bytes");
}

// As many are on their way as the program asked its queue to hold, each with a signal of the program's, so a
// barrier of ours behind each. Of several rounds the best counts: on a busy machine the thread that collects
// may get no turn, and what it could not collect is counted.
TEST_F(RocrTest, AHundredThousandOfAHundredThousandWithTheQueueFull) {
  constexpr uint64_t kKernels = 100'000;
  constexpr int kMostRounds = 12;
  for (const uint64_t packets : {4096, 16384}) {
    uint64_t best = 0;
    for (int round = 0; round < kMostRounds && best < kKernels; ++round) {
      RunDirectory run;
      RocrTest::run({"lockstep-rocr-job", "--dispatches", std::to_string(kKernels), "--packets",
                     std::to_string(packets), "--in-flight", std::to_string(packets - 2), "--signal-every",
                     "1", "--unwaited"},
                    {{"LOCKSTEP_DIR", run.path()}});
      const HsaFile f(run.files().at(0));
      f.expect_sums();
      EXPECT_LE(f.counters()["signals"], packets);
      EXPECT_EQ(f.count(format::Kind::kDispatch) + f.counters()["drop (no room)"], kKernels)
          << "each has a record, with times or without";
      best = std::max<uint64_t>(best, f.finished().size());
    }
    EXPECT_EQ(best, kKernels) << packets;
  }
}

TEST_F(RocrTest, SignalledOnesAreStampedByTheDeviceAndNoSignalLeaks) {
  const auto output = run({"lockstep-rocr-job", "--dispatches", "200", "--signal-every", "1", "--shut-down"});
  EXPECT_EQ(output.value("unstamped", -1), 0);
  const HsaFile f = file();
  EXPECT_EQ(f.counters()["barriers added"], 200u);
  EXPECT_EQ(f.finished().size(), 200u);
  f.expect_sums();
}

// Its release is in the name of the runtime's file. The program must run as it does without us.
TEST_F(RocrTest, Rocm72IsLeftAloneUnlessItIsSaidToBePatched) {
  const std::string name = "libhsa-runtime64.so.1";
  const std::string theirs = is_unpacked(name) ? std::string(kRocm) + "/" + name : kSystem + ("/" + name);
  const struct {
    const char *release, *setting;
    bool is_left_alone;
  } cases[] = {{"70201", "", true}, {"70201", "patched", false}, {"70102", "", false}, {"70300", "", false}};
  for (const auto& [release, setting, is_left_alone] : cases) {
    RunDirectory run;
    const std::string folder = run_.path() + "/rocm" + release + setting;
    const std::string real = folder + "/" + name + ".18." + release;
    std::filesystem::create_directory(folder);
    std::filesystem::copy_file(theirs, real);
    std::filesystem::create_symlink(real, folder + "/" + name);
    RocrTest::run({"lockstep-rocr-job", "--dispatches", "100"},
                  {{"LOCKSTEP_DIR", run.path()}, {"LOCKSTEP_HSA", setting}, {"LD_LIBRARY_PATH", folder}});
    const HsaFile f(run.files().at(0));
    EXPECT_EQ(f.finished().size(), is_left_alone ? 0u : 100u) << release << setting;
    EXPECT_EQ(f.note(format::kNoteHsa).find("ROCm 7.2 can crash") != std::string::npos, is_left_alone)
        << f.note(format::kNoteHsa);
  }
}

TEST_F(RocrTest, GpusUnderEveryMask) {
  const struct {
    const char* mask;
    std::vector<std::string> pci;
  } cases[] = {{"", {"0000:11:00.0", "0000:12:00.0", "0000:13:00.0", "0000:14:00.0"}},
               {"2", {"0000:13:00.0"}},
               {"3,0", {"0000:14:00.0", "0000:11:00.0"}}};
  for (const auto& one : cases) {
    RunDirectory run;
    std::map<std::string, std::string> with{{"LOCKSTEP_SIM_GPUS", "4"}, {"LOCKSTEP_DIR", run.path()}};
    if (*one.mask != 0) with["ROCR_VISIBLE_DEVICES"] = one.mask;
    RocrTest::run({"lockstep-rocr-job", "--dispatches", "10"}, with);
    const HsaFile f(run.files().at(0));
    std::map<uint32_t, std::string> by_number;  // a GPU may be defined again, with what was learnt since
    for (const auto& agent : f.all<format::GpuAgentDef>(format::Def::kGpuAgent))
      by_number[agent.head.id] = agent.pci;
    std::vector<std::string> pci;
    for (const auto& [number, address] : by_number) pci.push_back(address);
    EXPECT_EQ(pci, one.pci) << one.mask;
  }
}

TEST_F(RocrTest, NoGpus) {
  run({"lockstep-rocr-job", "--dispatches", "0"}, {{"LOCKSTEP_SIM_GPUS", "0"}});
  EXPECT_EQ(file().note(format::kNoteHsa), "no GPU in this process");
}

TEST_F(RocrTest, BehindAnotherToolItObserves) {
  run({"lockstep-rocr-job", "--dispatches", "50"}, {{"HSA_TOOLS_LIB", std::string(kOther) + " " + kOurs}});
  const HsaFile f = file();
  EXPECT_EQ(f.counters()["drop (observed)"], 50u);
  EXPECT_EQ(f.count(format::Kind::kGpuTimes), 0u);
  f.expect_sums();
}

TEST_F(RocrTest, BelowAToolThatChainsItTimesAndUnderOneThatDoesNotItSeesNoQueue) {
  for (const bool chains : {true, false}) {
    SCOPED_TRACE(chains);
    RunDirectory run;
    RocrTest::run({"lockstep-rocr-job", "--dispatches", "50"},
                  {{"HSA_TOOLS_LIB", std::string(kOurs) + " " + kOther},
                   {"OTHER_TOOL", chains ? "chain" : "alone"},
                   {"LOCKSTEP_DIR", run.path()}});
    const HsaFile f(run.files().at(0));
    EXPECT_EQ(f.finished().size(), chains ? 50u : 0u);
    EXPECT_EQ(f.counters()["queues"], chains ? 1u : 0u);
    if (chains) f.expect_sums();
  }
}

TEST_F(RocrTest, ARuntimeThatStartsAnewIsRecordedAnewAndLeaksNothing) {
  run({"lockstep-rocr-job", "--dispatches", "100", "--signal-every", "10", "--rounds", "3", "--shut-down"});
  const HsaFile f = file();
  EXPECT_EQ(f.finished().size(), 300u);
  EXPECT_EQ(f.counters()["queues"], 3u);
  f.expect_sums();
}

TEST_F(RocrTest, ChildrenWithAndWithoutExec) {
  run({"lockstep-rocr-job", "--dispatches", "80", "--fork"});
  const auto files = run_.files();
  ASSERT_EQ(files.size(), 2u) << "its own, and that of the program that a child became";
  std::multiset<size_t> dispatches;
  for (const std::string& path : files) {
    const HsaFile f(path);
    EXPECT_TRUE(f.problems().empty());
    dispatches.insert(f.finished().size());
    f.expect_sums();
  }
  EXPECT_EQ(dispatches, (std::multiset<size_t>{30, 80}));
}

// A barrier more for each second kernel, where as many packets are on their way as the program asked room
// for: this runtime must never be given more than the ring holds, or it ends the process.
TEST_F(RocrTest, ANearlyFullRing) {
  run({"lockstep-rocr-job", "--dispatches", "4000", "--first-ns", "400000000", "--in-flight", "4094",
       "--signal-every", "2", "--unwaited"});
  const HsaFile f = file();
  std::map<std::string, uint64_t> counters = f.counters();
  EXPECT_EQ(counters["packets"] - counters["drop (not kernel)"], 4000u);
  EXPECT_GT(counters["barriers added"], 500u) << "signalled kernels are timed while there is room";
  f.expect_sums();
}

// Wherever it is, while it starts and while kernels run: the file is whole, names the kernels that ended, and
// those that did not.
TEST_F(RocrTest, KilledAtAnyPoint) {
  struct Point {
    bool is_running;
    int ms;
  };
  const auto with_kernels = [](const RunDirectory& run) {
    const std::vector<std::string> files = run.files();
    return std::any_of(files.begin(), files.end(), [](const std::string& path) {
      const HsaFile f(path);
      return f.size() >= format::kHeaderBytes && !f.finished().empty();
    });
  };
  for (const auto [is_running, ms] : {Point{false, 3}, Point{false, 10}, Point{false, 15}, Point{false, 20},
                                      Point{false, 30}, Point{true, 0}, Point{true, 7}, Point{true, 40}}) {
    SCOPED_TRACE(std::string(is_running ? "after the first kernels " : "after the start ") +
                 std::to_string(ms));
    RunDirectory run;
    Surroundings around;
    around.folder = run.path();
    around.environment = surroundings({{"LOCKSTEP_DIR", run.path()}});
    Process job({LOCKSTEP_BIN_DIR "/lockstep-rocr-job", "--dispatches", "1000000000", "--signal-every", "3"},
                around);
    const double patience = seconds_now() + kPatienceSeconds;
    while (is_running && !with_kernels(run) && seconds_now() < patience) sleep_ms(2);
    sleep_ms(ms);
    kill(job.pid(), SIGKILL);
    EXPECT_EQ(job.wait().code, 1000 + SIGKILL);
    EXPECT_TRUE(!is_running || with_kernels(run));
    for (const std::string& path : run.files()) {
      const HsaFile f(path);
      if (f.size() < format::kHeaderBytes || f.state() == format::FileState::kBuilding) continue;
      EXPECT_TRUE(f.problems().empty()) << f.problems().front();
      EXPECT_LE(f.open().size(), 4096u) << "no more than the queue holds";
    }
  }
}

class HipTest : public RocrTest {
 protected:
  void SetUp() override {
    RocrTest::SetUp();
    if (IsSkipped()) return;
    if (!is_there("libamdhip64.so.5"))
      GTEST_SKIP() << "libamdhip64-5 is not there (tools/setup --test unpacks it)";
    if (!std::filesystem::exists(kCode)) GTEST_SKIP() << "no clang with lld was there to compile kernels.cl";
  }
  static constexpr char kCode[] = LOCKSTEP_LIB_DIR "/software-gpu/kernels.co";
};

// However a program takes times, and whatever is recorded: around a launch, by the launch itself as RCCL's
// packets bear it, and around a graph of eight. Of several rounds the best counts: a busy machine may hold
// the device up.
TEST_F(HipTest, TimesByEventsAreThoseOfAnUntracedProgram) {
  constexpr double kPart = 0.05;
  constexpr int kMostRounds = 12;
  using Best = std::map<std::string, double>;
  const std::map<std::string, double> least = {{"by_events_ms", 3}, {"by_launch_ms", 3}, {"by_graph_ms", 24}};
  const std::map<std::string, std::map<std::string, std::string>> ways = {
      {"untraced", {{"HSA_TOOLS_LIB", ""}}},
      {"default", {}},
      {"lite", {{"LOCKSTEP_MODE", "lite"}}},
      {"copies", {{"LOCKSTEP_HSA", "copies"}}},
      {"observed", {{"HSA_TOOLS_LIB", std::string(kOther) + " " + kOurs}}}};
  std::map<std::string, Best> best;
  const auto is_equal = [&](const std::string& way, const std::string& time) {
    return std::abs(best[way][time] - best["untraced"][time]) <= kPart * best["untraced"][time];
  };
  bool are_equal = false;
  for (int round = 0; round < kMostRounds && !are_equal; ++round) {
    for (auto [way, with] : ways) {
      RunDirectory run;
      with.insert({{"LOCKSTEP_SIM_KERNEL_NS", "3000000"}, {"LOCKSTEP_DIR", run.path()}});
      const auto output = RocrTest::run({"lockstep-hip-job", kCode, "0", "1"}, with);
      for (const auto& [time, ms] : least) {
        double& of = best[way].try_emplace(time, 1e9).first->second;
        of = std::min(of, output.value(time, 1e9));
      }
    }
    are_equal = true;
    for (const auto& [way, with] : ways)
      for (const auto& [time, ms] : least) are_equal = are_equal && is_equal(way, time);
  }
  for (const auto& [way, with] : ways) {
    for (const auto& [time, ms] : least) {
      EXPECT_GE(best[way][time], ms * (1 - kPart)) << way << ' ' << time;
      EXPECT_TRUE(is_equal(way, time))
          << way << ' ' << time << ": " << best[way][time] << " ms, untraced " << best["untraced"][time];
    }
  }
}

// Times that a program measures by events must not change by being traced: 3 ms here, as long as the kernel
// takes.
TEST_F(HipTest, EventsOfTheProgramKeepTheirTimes) {
  const auto output = run({"lockstep-hip-job", kCode, "20"}, {{"LOCKSTEP_SIM_KERNEL_NS", "3000000"}});
  for (const char* way : {"by_events_ms", "by_launch_ms"}) {
    EXPECT_GT(output.value(way, 0.0), 2.85) << way;
    EXPECT_LT(output.value(way, 0.0), 300.0)
        << way << ": a busy machine may hold the device up, but no host thread is waited for";
  }
  const HsaFile f = file();
  std::map<std::string, size_t> names;
  for (const auto& dispatch : f.finished()) ++names[f.symbol(dispatch.symbol)];
  EXPECT_GE(names["plain_compute"], 16u);
  EXPECT_GE(names["ncclDevKernel_Generic_1"], 6u);
  bool has_signalled = false;
  std::set<uint64_t> communicators;
  for (const auto& dispatch : f.finished()) {
    if (f.symbol(dispatch.symbol) != "ncclDevKernel_Generic_1") {
      EXPECT_EQ(dispatch.arguments, 0u);
      continue;
    }
    has_signalled |= (dispatch.head.flags & format::kFlagSignalled) != 0;
    communicators.insert(dispatch.arguments);
  }
  EXPECT_TRUE(has_signalled) << "launched with a stop event, as RCCL does it";
  EXPECT_TRUE(communicators.contains(0x1111000));
  f.expect_sums();
}

// HSA is masked by ROCR_VISIBLE_DEVICES alone; the others choose among what that leaves. Whatever the mix,
// kernels are those of the GPU on which they ran.
TEST_F(HipTest, KernelsAreOfTheirGpuUnderEveryMixOfMasks) {
  const struct {
    std::map<std::string, std::string> masks;
    const char* pci;
  } cases[] = {{{{"HIP_VISIBLE_DEVICES", "2"}}, "0000:13:00.0"},
               {{{"CUDA_VISIBLE_DEVICES", "3"}}, "0000:14:00.0"},
               {{{"ROCR_VISIBLE_DEVICES", "3,1"}, {"HIP_VISIBLE_DEVICES", "1"}}, "0000:12:00.0"}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.pci);
    RunDirectory run;
    std::map<std::string, std::string> with = one.masks;
    with.insert({{"LOCKSTEP_SIM_GPUS", "4"}, {"LOCKSTEP_DIR", run.path()}});
    RocrTest::run({"lockstep-hip-job", kCode, "4"}, with);
    const HsaFile f(run.files().at(0));
    std::map<uint32_t, std::string> pci;
    for (const auto& agent : f.all<format::GpuAgentDef>(format::Def::kGpuAgent))
      pci[agent.head.id] = agent.pci;
    EXPECT_GE(f.finished().size(), 6u);
    for (const auto& dispatch : f.finished()) EXPECT_EQ(pci[dispatch.agent], one.pci);
  }
}

// Nodes come as packets of the launching stream's queue, each replay anew; no plugin sees these launches, so
// the communicator in the arguments is what tells whose they are.
TEST_F(HipTest, KernelsOfEachReplayOfAGraph) {
  constexpr size_t kReplays = 5;
  for (const char* mode : {"default", "lite", "deep"}) {
    SCOPED_TRACE(mode);
    RunDirectory run;
    RocrTest::run({"lockstep-hip-job", kCode, "0", std::to_string(kReplays)},
                  {{"LOCKSTEP_MODE", mode}, {"LOCKSTEP_DIR", run.path()}});
    const HsaFile f(run.files().at(0));
    std::map<std::string, size_t> of_the_graph;
    for (const auto& dispatch : f.finished()) {
      const std::string name = f.symbol(dispatch.symbol);
      if (dispatch.arguments == 0x2222000 || name == "plain_compute") ++of_the_graph[name];
    }
    EXPECT_EQ(of_the_graph["ncclDevKernel_Generic_1"], 2 * kReplays);
    // And the one outside the graph.
    EXPECT_EQ(of_the_graph["plain_compute"], std::string(mode) == "lite" ? 0u : 6 * kReplays + 1);
    f.expect_sums();
  }
}

TEST_F(HipTest, LiteKeepsRcclsKernels) {
  run({"lockstep-hip-job", kCode, "40"}, {{"LOCKSTEP_MODE", "lite"}});
  const HsaFile f = file();
  for (const auto& dispatch : f.finished()) EXPECT_EQ(f.symbol(dispatch.symbol), "ncclDevKernel_Generic_1");
  EXPECT_GE(f.finished().size(), 11u);
  f.expect_sums();
}

}  // namespace
}  // namespace lockstep::test
