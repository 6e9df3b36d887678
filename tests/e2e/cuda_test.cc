// SPDX-License-Identifier: Apache-2.0
// Kernels of a traced program, and that its own profiler keeps what it would have had.
#include "tests/e2e/workplace.h"

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

// Started without the launcher, by the injection alone: it would take a profiler's records away, so it does nothing.
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

}  // namespace
}  // namespace lockstep::test
