// SPDX-License-Identifier: Apache-2.0
// Runs larger than memory: what does not fit lies in files, and changes nothing.
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"

namespace lockstep::test {
namespace {

class Memory : public Workplace {
 protected:
  // Half a million operations: columns of some 50 MB.
  void SetUp() override {
    const Argv simulator = {LOCKSTEP_BIN_DIR "/lockstep-sim-job",
                            "--ranks",
                            "64",
                            "--steps",
                            "80",
                            "--ops-per-step",
                            "100",
                            "--mode",
                            "default",
                            "-o",
                            path("run")};
    const Finished finished = do_here(simulator);
    ASSERT_EQ(finished.code, 0) << finished;
    std::filesystem::create_directory(path("spill"));
  }
  Finished diagnose(Argv options, const std::string& folder = "spill") const {
    options.insert(options.begin(), {"diagnose", "--json", "run"});
    return do_here(lockstep(options), {{"TMPDIR", path(folder)}});
  }
};

TEST_F(Memory, PastTheLimitTheAnswerIsTheSameAndNothingIsLeft) {
  const Finished in_memory = diagnose({}), in_files = diagnose({"--memory", "0"});
  EXPECT_EQ(in_memory.code, 0) << in_memory;
  EXPECT_EQ(in_files.code, 0) << in_files;
  EXPECT_EQ(in_memory.out, in_files.out);
  EXPECT_TRUE(std::filesystem::is_empty(path("spill")));
  const Argv summary = {"summary", "--json", "run"};
  Argv limited = summary;
  limited.insert(limited.end(), {"--memory", "1.5M"});
  EXPECT_EQ(do_here(lockstep(summary)).out, do_here(lockstep(limited), {{"TMPDIR", path("spill")}}).out);
}

TEST_F(Memory, WhatHasToStayInMemoryIsAFractionOfTheRun) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers' own memory counts";
  const auto limited = [&](const std::string& more) {
    return do_here(
        {"/bin/bash", "-c", "ulimit -d 49152; exec " LOCKSTEP_BIN_DIR "/lockstep diagnose run " + more},
        {{"TMPDIR", path("spill")}});
  };
  const Finished without = limited("");
  EXPECT_EQ(without.code, 2) << without;
  EXPECT_TRUE(has(without.err, "--memory")) << without;
  const Finished with = limited("--memory 1M");
  EXPECT_EQ(with.code, 0) << with;
}

TEST_F(Memory, SaysWhereTheFilesFindNoPlace) {
  const Finished finished = diagnose({"--memory", "0"}, "nowhere");
  EXPECT_EQ(finished.code, 2) << finished;
  EXPECT_TRUE(has(finished.err, path("nowhere") + " takes no more: No such file")) << finished;
  for (const char* wrong : {"much", "-1", "1X", "1e9", ""})
    EXPECT_EQ(diagnose({"--memory", wrong}).code, 2) << wrong;
}

}  // namespace
}  // namespace lockstep::test
