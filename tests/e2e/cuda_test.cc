// SPDX-License-Identifier: Apache-2.0
// Kernels of a traced program, and that its own profiler keeps what it would have had.
#include <fstream>
#include <iterator>

#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

class Cuda : public Workplace {
 protected:
  static Argv cuda(Argv words) {
    words.insert(words.begin(), LOCKSTEP_E2E_CUDA_JOB);
    return words;
  }
  static Argv traced(Argv options, const Argv& words) {
    options.insert(options.begin(), "trace");
    options.push_back("--");
    options.insert(options.end(), words.begin(), words.end());
    return lockstep(std::move(options));
  }
};

TEST_F(Cuda, KernelsComeIntoTheTraceAndToTheProgramsProfiler) {
  const Argv words = cuda({"kernels", "100", "profile", "30", "kernels", "5", "profile", "7"});
  const Finished alone = do_here(words);
  EXPECT_EQ(alone.out, "profiled 30 kernels, saw 30\nprofiled 7 kernels, saw 7\n") << alone;
  const Finished finished = do_here(traced({"-o", "t.db"}, words));
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(finished.out, alone.out) << finished;
  const auto document = info("t.db");
  EXPECT_EQ(document["events"]["Kernel"], 142) << document["events"];
  EXPECT_EQ(document["processes"], 1);
  const Finished asked = do_here({"sqlite3", "t.db", "SELECT count(*) FROM rocpd_op"});
  EXPECT_EQ(asked.out, "142\n") << asked;
}

TEST_F(Cuda, AKilledProgramLeavesWhatItsLastFlushBrought) {
  const Finished finished =
      do_here(traced({"-o", "t.db"}, cuda({"kernels", "100", "sleep", "1500", "kernels", "1", "kill"})));
  EXPECT_EQ(finished.code, 128 + SIGKILL);
  EXPECT_GE(info("t.db")["events"]["Kernel"], 100);
}

TEST_F(Cuda, LiteLeavesCudaAlone) {
  const Finished finished =
      do_here(traced({"-o", "t.db", "--mode", "lite", "--keep"}, cuda({"kernels", "9", "profile", "4"})));
  EXPECT_EQ(finished.out, "profiled 4 kernels, saw 4\n") << finished;
}

TEST_F(Cuda, AnotherInjectedLibraryKeepsItsPlace) {
  const Finished finished =
      do_here(traced({"-o", "t.db"}, {"sh", "-c", "echo $CUDA_INJECTION64_PATH:$LD_PRELOAD"}),
              {{"CUDA_INJECTION64_PATH", "/opt/nsight/libinjection.so"}});
  EXPECT_EQ(finished.out, "/opt/nsight/libinjection.so:\n") << finished;
  EXPECT_TRUE(has(finished.err, "CUDA_INJECTION64_PATH names /opt/nsight/libinjection.so")) << finished;
}

TEST_F(Cuda, ProgramsAroundTheJobSeeNoOtherPreload) {
  const Finished finished = do_here(traced({"-o", "t.db"}, {"sh", "-c", "echo $LD_PRELOAD"}),
                                    {{"LD_PRELOAD", LOCKSTEP_LIB_DIR "/liblockstep.so"}});
  EXPECT_EQ(finished.out, LOCKSTEP_LIB_DIR "/liblockstep.so:" LOCKSTEP_LIB_DIR "/liblockstep-cuda.so\n")
      << finished;
}

TEST_F(Cuda, NvidiasOwnToolsFindNoInjection) {
  std::filesystem::create_symlink(LOCKSTEP_E2E_CUDA_JOB, folder_ / "ncu");
  Finished finished = do_here(traced({"-o", "t.db"}, {path("ncu"), "kernels", "9", "profile", "4"}));
  EXPECT_EQ(finished.out, "profiled 4 kernels, saw 4\n") << finished;
  EXPECT_FALSE(has(finished.err, "cuda.lks")) << finished;
  finished = do_here(traced({"-o", "u.db"}, cuda({"kernels", "9", "profile", "4"})),
                     {{"NV_TPS_LAUNCH_TOKEN", "Interactive"}});
  EXPECT_EQ(finished.out, "profiled 4 kernels, saw 4\n") << finished;
}

// Started without the launcher, by the injection alone: it would take a profiler's records away, so it does
// nothing.
TEST_F(Cuda, InjectionWithoutPreloadStandsAside) {
  const std::map<std::string, std::string> environment = {
      {"CUDA_INJECTION64_PATH", LOCKSTEP_LIB_DIR "/liblockstep-cuda.so"}, {"LOCKSTEP_DIR", path("run")}};
  const Finished finished = do_here(cuda({"kernels", "9", "profile", "4"}), environment);
  EXPECT_EQ(finished.out, "profiled 4 kernels, saw 4\n") << finished;
  EXPECT_TRUE(has(finished.err, "must also be in LD_PRELOAD")) << finished;
  EXPECT_EQ(info("run")["events"]["Kernel"], 0);
}

// And by the preload alone: it tells the driver itself.
TEST_F(Cuda, PreloadAloneIsEnough) {
  const std::map<std::string, std::string> environment = {
      {"LD_PRELOAD", LOCKSTEP_LIB_DIR "/liblockstep-cuda.so"}, {"LOCKSTEP_DIR", path("run")}};
  const Finished finished = do_here(cuda({"kernels", "9", "profile", "4"}), environment);
  EXPECT_EQ(finished.out, "profiled 4 kernels, saw 4\n") << finished;
  EXPECT_EQ(info("run")["events"]["Kernel"], 13);
}

class NvtxRanges : public Cuda {
 protected:
  // What trace.db says of the ranges, "name|domain|kind|is open", in order of begin.
  Finished ranges_of(const std::string& file) {
    return do_here(
        {"sqlite3", file, "SELECT name, domain, kind, end_ns IS NULL FROM ranges ORDER BY start_ns"});
  }
  std::string content(const std::string& file) const {
    std::ifstream in(path(file), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static constexpr const char* kAll =
      "pr\u00e9fetch|loader|free|0\nstep||nested|0\nforward||nested|0\nopen at the end||nested|1\n";
};

TEST_F(NvtxRanges, ComeIntoTheTraceAndEveryOutput) {
  const Finished finished =
      do_here(traced({"-o", "t.db"}, cuda({"ranges", "kernels", "10"})), {{"LOCKSTEP_CUDA", "ranges"}});
  EXPECT_EQ(finished.code, 0) << finished;
  const Finished asked = ranges_of("t.db");
  EXPECT_EQ(asked.out, kAll) << asked;
  const auto document = info("t.db");
  EXPECT_EQ(document["events"]["Range"], 4);
  EXPECT_EQ(document["events"]["Kernel"], 10);
  EXPECT_TRUE(has(do_here(lockstep({"info", "t.db"})).out, "\nRanges of NVTX: 4\n"));
  const Finished api =
      do_here({"sqlite3", "t.db", "SELECT args FROM api WHERE category = 'UserMarker' ORDER BY start"});
  EXPECT_EQ(api.out, "pr\u00e9fetch\nstep\nforward\nopen at the end\n") << api;
  EXPECT_EQ(do_here(lockstep({"convert", "-o", "t.json", "t.db"})).code, 0);
  EXPECT_EQ(do_here(lockstep({"convert", "-f", "csv", "-o", "t.csv", "t.db"})).code, 0);
  const std::string timeline = content("t.json"), table = content("t.csv/ranges.csv");
  for (const char* name :
       {"\"forward\"", "\"pr\u00e9fetch\"", "\"domain\":\"loader\"", "\"unfinished\":true"})
    EXPECT_TRUE(has(timeline, name)) << name;
  EXPECT_TRUE(has(table, ",forward,,nested,")) << table;
  EXPECT_EQ(timeline.find("ncclAllReduce"), std::string::npos) << "NCCL's are the profiler plugin's";
  EXPECT_EQ(do_here(lockstep({"summary", "t.db"})).code, 0);
}

TEST_F(NvtxRanges, NobodyAsksForThemUnlessTold) {
  const Finished finished = do_here(traced({"-o", "t.db"}, {"sh", "-c", "echo [$NVTX_INJECTION64_PATH]"}));
  EXPECT_EQ(finished.out, "[]\n") << finished;
}

TEST_F(NvtxRanges, ACopyThatIsPreloadedIsTheOne) {
  std::filesystem::copy_file(LOCKSTEP_LIB_DIR "/liblockstep-cuda.so", folder_ / "liblockstep-cuda.so");
  const Finished finished =
      do_here(traced({"-o", "t.db", "--dir", "run"}, cuda({"ranges"})),
              {{"LD_PRELOAD", path("liblockstep-cuda.so")}, {"LOCKSTEP_CUDA", "ranges"}});
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(ranges_of("t.db").out, kAll);
  EXPECT_TRUE(has(finished.err, "1 file of 1 process")) << finished;
}

TEST_F(NvtxRanges, AnotherToolKeepsItsPlace) {
  const std::map<std::string, std::string> environment = {
      {"LOCKSTEP_CUDA", "copies,ranges"}, {"NVTX_INJECTION64_PATH", "/opt/nsight/libnvtx.so"}};
  const Finished finished =
      do_here(traced({"-o", "t.db"}, {"sh", "-c", "echo $NVTX_INJECTION64_PATH"}), environment);
  EXPECT_EQ(finished.out, "/opt/nsight/libnvtx.so\n") << finished;
  const std::string message = "NVTX_INJECTION64_PATH names /opt/nsight/libnvtx.so";
  EXPECT_TRUE(has(finished.err, message)) << finished;
  EXPECT_EQ(finished.err.find(message), finished.err.rfind(message)) << "once";
}

// A program without CUDA, by each of the two ways without the launcher.
TEST_F(NvtxRanges, PreloadOrInjectionAloneIsEnough) {
  for (const char* variable : {"LD_PRELOAD", "NVTX_INJECTION64_PATH"}) {
    const Finished finished = do_here(cuda({"ranges"}), {{variable, LOCKSTEP_LIB_DIR "/liblockstep-cuda.so"},
                                                         {"LOCKSTEP_CUDA", "ranges"},
                                                         {"LOCKSTEP_DIR", path(variable)}});
    EXPECT_EQ(finished.code, 0) << finished;
    EXPECT_EQ(info(variable)["events"]["Range"], 4) << variable;
  }
}

TEST_F(NvtxRanges, AKilledProgramLeavesThem) {
  const Finished finished =
      do_here(traced({"-o", "t.db"}, cuda({"ranges", "kill"})), {{"LOCKSTEP_CUDA", "ranges"}});
  EXPECT_EQ(finished.code, 128 + SIGKILL);
  const Finished asked = ranges_of("t.db");
  EXPECT_EQ(asked.out, kAll) << asked;
}

}  // namespace
}  // namespace lockstep::test
