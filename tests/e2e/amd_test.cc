// SPDX-License-Identifier: Apache-2.0
// How kernels of AMD GPUs come into a trace: which of the two libraries the launcher chooses, and what a
// program with rocprofiler's SDK (a stub) leaves.
#include <csignal>
#include <memory>

#include "tests/e2e/workplace.h"
#include "tests/support/child.h"
#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/sanitizers.h"

namespace lockstep::test {
namespace {

constexpr char kHsa[] = LOCKSTEP_LIB_DIR "/liblockstep-hsa.so",
               kRocp[] = LOCKSTEP_LIB_DIR "/liblockstep-rocp.so";

class Amd : public Workplace {
 protected:
  // What the job sees of the variables, "HSA_TOOLS_LIB|ROCP_TOOL_LIBRARIES|..._V1_TOOLS".
  Finished variables(const std::map<std::string, std::string>& environment) {
    return do_here(lockstep({"trace", "-o", "t.db", "--", "sh", "-c",
                             "echo \"$HSA_TOOLS_LIB|$ROCP_TOOL_LIBRARIES|$HSA_TOOLS_ROCPROFILER_V1_TOOLS\""}),
                   environment);
  }
};

TEST_F(Amd, TheRuntimesToolsInterfaceByDefault) {
  const Finished finished = variables({});
  EXPECT_EQ(finished.out, std::string(kHsa) + "||1\n") << finished;
}

TEST_F(Amd, TheSdkWhereItIsAskedFor) {
  // Ours for the runtime was there already, from a launcher around this one.
  const Finished finished = variables({{"LOCKSTEP_HSA", "sdk"}, {"HSA_TOOLS_LIB", kHsa}});
  EXPECT_EQ(finished.out, "|" + std::string(kRocp) + ":|\n") << finished;
}

TEST_F(Amd, TheSdkBesideItsOtherClients) {
  Finished finished = variables(
      {{"LOCKSTEP_HSA", "sdk"}, {"ROCP_TOOL_LIBRARIES", "/bin/sh:"}, {"HSA_TOOLS_LIB", "other.so"}});
  EXPECT_EQ(finished.out, "other.so|/bin/sh:" + std::string(kRocp) + ":|\n") << finished;
  EXPECT_EQ(variables({{"ROCP_TOOL_LIBRARIES", "/bin/sh:"}}).out, std::string(kHsa) + "|/bin/sh:|1\n")
      << "not asked for";
  finished = variables({{"LOCKSTEP_HSA", "sdk"}, {"ROCP_TOOL_LIBRARIES", "/no/such/tool.so"}});
  EXPECT_TRUE(has(finished.err, "ROCP_TOOL_LIBRARIES names /no/such/tool.so, which does not exist"))
      << finished;
  finished = variables({{"LOCKSTEP_HSA", "sdk"}, {"ROCPROFILER_REGISTER_ENABLED", "0"}});
  EXPECT_TRUE(has(finished.err, "ROCPROFILER_REGISTER_ENABLED is 0")) << finished;
}

TEST_F(Amd, SwitchesOfTheSdkThatAreOff) {
  const Finished finished = variables({{"ROCPROFILER_REGISTER_FORCE_LOAD", "off"}, {"LOCKSTEP_HSA", "sdk"}});
  EXPECT_TRUE(has(finished.err, "ROCPROFILER_REGISTER_FORCE_LOAD is off: rocprofiler's SDK will not load"))
      << finished;
}

TEST_F(Amd, WordsThatNobodyKnowsAreSaid) {
  for (const char* word : {"OFF", "copy", " off"}) {
    const Finished finished = variables({{"LOCKSTEP_HSA", std::string("print,") + word}});
    EXPECT_TRUE(has(finished.err, "LOCKSTEP_HSA has a word that nobody knows, and that is ignored: \"" +
                                      std::string(word) + '"'))
        << finished;
  }
  EXPECT_FALSE(has(variables({{"LOCKSTEP_HSA", "print,,noargs,"}}).err, "nobody knows"));
}

// As the runtime reads it.
TEST_F(Amd, TheOldToolsThatAreSwitchedOff) {
  for (const char* off : {"0", "off", "No"}) {
    const Finished finished = variables({{"HSA_TOOLS_ROCPROFILER_V1_TOOLS", off}});
    EXPECT_TRUE(has(finished.err, "HSA_TOOLS_ROCPROFILER_V1_TOOLS is " + std::string(off) + ": a process"))
        << finished;
  }
}

// HIP of ROCm 10 makes queues that cannot be intercepted where it is 1.
TEST_F(Amd, QueuesAreMadeInTheHostsMemory) {
  const auto seen = [&](const std::map<std::string, std::string>& environment) {
    return do_here(lockstep({"trace", "-o", "t.db", "--", "sh", "-c", "echo \"$DEBUG_CLR_AQL_DEV_QUEUE|\""}),
                   environment);
  };
  EXPECT_EQ(seen({}).out, "0|\n");
  const Finished finished = seen({{"DEBUG_CLR_AQL_DEV_QUEUE", "1"}});
  EXPECT_EQ(finished.out, "1|\n") << "the user's choice";
  EXPECT_TRUE(
      has(finished.err, "DEBUG_CLR_AQL_DEV_QUEUE is 1: kernels on queues in GPU memory are not recorded"))
      << finished;
  EXPECT_EQ(seen({{"LOCKSTEP_HSA", "sdk"}}).out, "|\n");
}

TEST_F(Amd, NeitherWhereItIsOff) { EXPECT_EQ(variables({{"LOCKSTEP_HSA", "off,sdk"}}).out, "||\n"); }

TEST_F(Amd, KernelsOfAClientOfTheSdkAreInTheTrace) {
  const Finished finished =
      do_here(lockstep({"trace", "-o", "t.db", "--", LOCKSTEP_BIN_DIR "/lockstep-sdk-job",
                        LOCKSTEP_LIB_DIR "/stub-sdk/librocprofiler-sdk.so", "50"}),
              {{"LOCKSTEP_HSA", "sdk,ranges,print"}});
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(finished.out, "1\n") << finished;
  EXPECT_TRUE(has(finished.err, "=== lockstep diagnostic (PID ") &&
              has(finished.err, "  recorded OK:         50\n"))
      << finished;
  const Finished asked = do_here(
      {"sqlite3", "t.db",
       "SELECT count(*), max(abs(end - start - 10000)) <= 500, count(DISTINCT gpuId), s.string FROM rocpd_op "
       "JOIN rocpd_string s ON s.id = description_id"});
  // A clock's rate is known badly after a millisecond.
  EXPECT_EQ(asked.out, "50|1|1|compute(float*)\n") << asked;
  const Finished ranges = do_here({"sqlite3", "t.db", "SELECT name, kind, ns > 500000 FROM ranges"});
  EXPECT_TRUE(ranges.out.starts_with("all kernels|") && ranges.out.ends_with("|1\n")) << ranges;
  EXPECT_TRUE(has(do_here(lockstep({"info", "t.db"})).out, "recorded OK")) << "counters";
}

// The program is linked with roctx, whose functions ours stand before: it gets what the library returns.
TEST_F(Amd, RangesOfRoctxWithoutTheSdk) {
  if (kSanitized) GTEST_SKIP() << "nothing is preloaded before a sanitizer";
  const std::string job = LOCKSTEP_BIN_DIR "/lockstep-roctx-job";
  const Finished finished =
      do_here(lockstep({"trace", "-o", "t.db", "--", job}), {{"LOCKSTEP_HSA", "ranges"}});
  EXPECT_EQ(finished.out, "0 1 1 0 1000\n") << finished;
  const Finished asked = do_here(
      {"sqlite3", "t.db",
       "SELECT name, kind, ns BETWEEN 2000000 AND 2000000000 FROM ranges ORDER BY start_ns, ns DESC"});
  EXPECT_EQ(asked.out, "data|free|1\nstep|nested|1\nforward|nested|1\n") << asked;
  for (const std::string setting : {"copies", "ranges,sdk", "ranges,off"}) {
    const Finished without =
        do_here(lockstep({"trace", "-o", setting + ".db", "--", job}), {{"LOCKSTEP_HSA", setting}});
    EXPECT_EQ(without.out, "0 1 1 0 1000\n") << without;
    EXPECT_FALSE(exists(setting + ".db")) << "nothing was recorded: " << setting;
  }
}

// A job of two ranks on a distribution's own ROCr and HIP, with software GPUs.
class AmdJob : public Amd {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "the libraries of AMD's are not built for it";
    if (!std::filesystem::exists(kCode)) GTEST_SKIP() << "no clang with lld was there to compile kernels.cl";
    for (const char* folder : {kRocm, "/usr/lib/x86_64-linux-gnu"})
      if (std::filesystem::exists(std::string(folder) + "/libamdhip64.so.5")) return;
    GTEST_SKIP() << "libamdhip64-5 is not there (tools/setup --test unpacks it)";
  }
  static Argv rank(Argv words) {
    words.insert(words.begin(), {LOCKSTEP_BIN_DIR "/lockstep-rccl-job", kCode});
    return words;
  }
  static std::map<std::string, std::string> surroundings(std::map<std::string, std::string> more) {
    more.insert({{"LD_LIBRARY_PATH", std::string(LOCKSTEP_LIB_DIR "/software-gpu:") + kRocm}});
    return more;
  }
  static constexpr char kCode[] = LOCKSTEP_LIB_DIR "/software-gpu/kernels.co",
                        kRocm[] = LOCKSTEP_SOURCE_DIR "/build/rocm/usr/lib/x86_64-linux-gnu";
};

// No call of RCCL's shows a replay: its kernels are known by their communicator.
TEST_F(AmdJob, ReplaysOfAGraphAreOperationsWithTheirKernels) {
  Argv argv = lockstep({"trace", "-o", "t.db", "--"});
  for (const std::string& word : rank({"3", "-1", "0", "0", "4", "5"})) argv.push_back(word);
  const Finished finished = do_here(argv, surroundings({}));
  EXPECT_EQ(finished.code, 0) << finished;
  const auto ask = [&](const std::string& what) { return do_here({"sqlite3", "t.db", what}).out; };
  EXPECT_EQ(ask("SELECT gpu_source, count(*), count(DISTINCT gpu_start_ns) FROM op GROUP BY 1"), "4|23|23\n")
      << "3 that were called, and 5 times 4";
  EXPECT_EQ(ask("SELECT kind, count FROM losses"), "");
}

// No setting of CUDA's brings times of AMD's kernels.
TEST_F(AmdJob, WithoutKernelsItSaysWhatRecordsThem) {
  Argv argv = lockstep({"trace", "-o", "t.db", "--"});
  for (const std::string& word : rank({"3", "-1", "0", "0"})) argv.push_back(word);
  EXPECT_EQ(do_here(argv, surroundings({{"LOCKSTEP_HSA", "off"}})).code, 0);
  for (const Argv& words : {Argv{"summary", "t.db"}, Argv{"diagnose", "t.db"},
                            Argv{"compare", "t.db", "t.db"}, Argv{"report", "-o", "report.html", "t.db"}}) {
    const Finished finished = do_here(lockstep(words));
    const std::string text =
        words[0] == "report" ? do_here({"cat", "report.html"}).out : finished.out + finished.err;
    EXPECT_TRUE(has(text, "LOCKSTEP_HSA=off") && has(text, "liblockstep-hsa.so")) << words[0] << finished;
    EXPECT_FALSE(has(text, "LOCKSTEP_CUDA") || has(text, "liblockstep-cuda.so")) << words[0] << finished;
  }
}

// HIP counts among what ROCr's list has left; people look for the host's number.
TEST_F(AmdJob, AGpuHasTheHostsNumberUnderTwoMasks) {
  const struct {
    std::map<std::string, std::string> masks;
    std::string gpu;
  } cases[] = {{{{"ROCR_VISIBLE_DEVICES", "2,3"}, {"HIP_VISIBLE_DEVICES", "1"}}, "  3  0000:14:00.0"},
               {{{"CUDA_VISIBLE_DEVICES", "3"}, {"HIP_VISIBLE_DEVICES", "1"}}, "  1  0000:12:00.0"}};
  for (const auto& of : cases) {
    Argv argv = lockstep({"trace", "-o", "t.db", "--"});
    for (const std::string& word : rank({"3", "-1", "0", "0"})) argv.push_back(word);
    std::map<std::string, std::string> with = of.masks;
    with["LOCKSTEP_SIM_GPUS"] = "4";
    const Finished finished = do_here(argv, surroundings(with));
    EXPECT_EQ(finished.code, 0) << finished;
    const Finished info = do_here(lockstep({"info", "t.db"}));
    EXPECT_TRUE(has(info.out, of.gpu)) << info;
  }
}

TEST_F(AmdJob, ARankThatNeverCallsIsNamedWhileTheOthersKernelRuns) {
  std::vector<std::unique_ptr<Process>> ranks;
  for (const std::string number : {"0", "1"}) {
    ranks.push_back(std::make_unique<Process>(
        rank({"300", "1", "40", "600000"}),
        here(surroundings({{"LOCKSTEP_DIR", path("run")},
                           {"NCCL_PROFILER_PLUGIN", LOCKSTEP_LIB_DIR "/liblockstep-nccl.so"},
                           {"HSA_TOOLS_LIB", kHsa},
                           {"LOCKSTEP_SIM_GPUS", "2"},
                           {"LOCKSTEP_SIM_RANKS", "2"},
                           {"LOCKSTEP_SIM_MEETING", path("meeting")},
                           {"HIP_VISIBLE_DEVICES", number},
                           {"RANK", number},
                           {"LOCAL_RANK", number},
                           {"WORLD_SIZE", "2"}}))));
  }
  Finished diagnosed;
  const double patience = seconds_now() + kPatienceSeconds;
  const auto is_found = [&] { return has(diagnosed.out, "CRITICAL: rank 1 (GPU 1 of "); };
  while (!is_found() && seconds_now() < patience) {
    sleep_ms(500);
    diagnosed = do_here(lockstep({"diagnose", "run"}));
  }
  for (const auto& process : ranks) kill(process->pid(), SIGKILL);
  for (const auto& process : ranks) process->wait();
  EXPECT_TRUE(is_found() && has(diagnosed.out, "has not called operation 40 of")) << diagnosed;
  EXPECT_TRUE(
      has(diagnosed.out, "rank 0: kernels that were launched and not seen to end: ncclDevKernel_Generic_1"))
      << diagnosed;
}

// Two ranks on a distribution's own ROCr and HIP: every operation with its kernel's times, every kernel by
// name and GPU, and who was late.
TEST_F(Amd, ADemoOnSoftwareGpusEndsInTheRightVerdict) {
  if (kSanitized) GTEST_SKIP() << "the libraries of AMD's are not built for it";
  const Finished demo =
      do_here({LOCKSTEP_SOURCE_DIR "/tools/demo_amd", LOCKSTEP_BIN_DIR "/..", path("demo")});
  if (has(demo.out, "demo-amd: skipped")) GTEST_SKIP() << demo.out;
  EXPECT_EQ(demo.code, 0) << demo;
  EXPECT_TRUE(has(demo.out, "WARNING: rank 1 (GPU 1 of ") && has(demo.out, "slow to launch since step "))
      << demo;
  EXPECT_TRUE(has(demo.out, "200 of 200 communication kernels joined to operations")) << demo;
  const auto ask = [&](const std::string& what) {
    return do_here({"sqlite3", path("demo/trace.db"), what}).out;
  };
  EXPECT_EQ(
      ask("SELECT gpuId, string, count(*) FROM rocpd_op JOIN rocpd_string s ON s.id = description_id "
          "GROUP BY 1, 2"),
      "0|ncclDevKernel_Generic_1|100\n0|plain_compute|100\n1|ncclDevKernel_Generic_1|100\n1|plain_compute|100\n");
  EXPECT_EQ(ask("SELECT gpu_source, count(*), min(gpu_end_ns > gpu_start_ns) FROM op GROUP BY 1"),
            "4|200|1\n");
  do_here(lockstep({"convert", path("demo/trace.db"), "-o", "timeline.json"}));
  const std::string timeline = do_here({"cat", "timeline.json"}).out;
  for (const char* gpu : {"GPU 0 (hip:0) of rank 0 (", "GPU 1 (hip:0) of rank 1 ("})
    EXPECT_TRUE(has(timeline, gpu)) << gpu;
}

}  // namespace
}  // namespace lockstep::test
