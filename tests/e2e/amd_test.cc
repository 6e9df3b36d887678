// SPDX-License-Identifier: Apache-2.0
// How kernels of AMD GPUs come into a trace: which of the two libraries the launcher chooses, and what a
// program with rocprofiler's SDK (a stub) leaves.
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

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

TEST_F(Amd, NeitherWhereItIsOff) { EXPECT_EQ(variables({{"LOCKSTEP_HSA", "off,sdk"}}).out, "||\n"); }

TEST_F(Amd, KernelsOfAClientOfTheSdkAreInTheTrace) {
  const Finished finished =
      do_here(lockstep({"trace", "-o", "t.db", "--", LOCKSTEP_BIN_DIR "/lockstep-sdk-job",
                        LOCKSTEP_LIB_DIR "/stub-sdk/librocprofiler-sdk.so", "50"}),
              {{"LOCKSTEP_HSA", "sdk,ranges"}});
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(finished.out, "1\n") << finished;
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

}  // namespace
}  // namespace lockstep::test
