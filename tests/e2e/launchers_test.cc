// SPDX-License-Identifier: Apache-2.0
// Launchers that one job starter began together share a run directory; the last one merges.
#include "tests/e2e/workplace.h"

namespace lockstep::test {
namespace {

class Launchers : public Workplace {
 protected:
  // The environment of one task of a Slurm step.
  static std::map<std::string, std::string> task(int rank, int tasks, const std::string& step = "0") {
    return {{"SLURM_JOB_ID", "77"},
            {"SLURM_STEP_ID", step},
            {"SLURM_PROCID", std::to_string(rank)},
            {"SLURM_NTASKS", std::to_string(tasks)},
            {"SLURM_STEP_NUM_TASKS", std::to_string(tasks)}};
  }
};

TEST_F(Launchers, ShareOneRunAndMergeOnce) {
  Argv words = {"ops", "5", "touch", "here", "await", "go"};
  Process first(trace({"-o", "t.db"}, {"ops", "5", "touch", "a", "await", "b"}), here(task(0, 3)));
  Process second(trace({"-o", "t.db"}, {"ops", "5", "touch", "b", "await", "go"}), here(task(1, 3)));
  Process third(trace({"-o", "t.db"}, {"ops", "5", "touch", "c", "await", "go"}), here(task(2, 3)));
  ASSERT_TRUE(wait_until([&] { return exists("a") && exists("b") && exists("c"); }));
  Finished early = first.wait();
  EXPECT_EQ(early.code, 0);
  EXPECT_TRUE(has(early.err, "other launchers of this job still run")) << early;
  EXPECT_FALSE(exists("t.db"));
  write_file(path("go"), "");
  second.wait();
  third.wait();
  auto document = info("t.db");
  EXPECT_EQ(document["processes"], 3);
  EXPECT_EQ(document["ops"], 15);
  EXPECT_TRUE(document["losses"].empty()) << document["losses"];
  EXPECT_FALSE(exists("t.run"));
  EXPECT_FALSE(exists("t.run.2"));
}

TEST_F(Launchers, WaitForOnesThatStartLate) {
  Process first(trace({"-o", "t.db"}, {"ops", "5", "touch", "a"}), here(task(0, 2)));
  ASSERT_TRUE(wait_until([&] { return exists("a"); }));
  Process second(trace({"-o", "t.db"}, {"ops", "5"}), here(task(1, 2)));
  first.wait();
  second.wait();
  EXPECT_EQ(info("t.db")["processes"], 2);
}

TEST_F(Launchers, AnotherStepIsAnotherRun) {
  Process first(trace({"-o", "t.db"}, {"ops", "5", "touch", "a", "await", "go"}), here(task(0, 1, "1")));
  ASSERT_TRUE(wait_until([&] { return exists("a"); }));
  Finished second = do_here(trace({"-o", "u.db", "--dir", "t.run"}, {"ops", "6"}), task(0, 1, "2"));
  EXPECT_TRUE(has(second.err, "t.run.2")) << second;
  EXPECT_EQ(info("u.db")["ops"], 6);
  write_file(path("go"), "");
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_EQ(info("t.db")["ops"], 5);
}

TEST_F(Launchers, RanksInTheNameMakeSeparateRuns) {
  for (int rank : {0, 1}) {
    EXPECT_EQ(do_here(trace({"-o", "t%r.db", "--keep"}, {"ops", "5"}), task(rank, 2)).code, 0);
    auto manifest = nlohmann::json::parse(read_file(path("t" + std::to_string(rank) + ".run/manifest.json")),
                                          nullptr, false);
    EXPECT_EQ(manifest["launchers_key"], "") << "nobody is waited for";
  }
  EXPECT_EQ(info("t0.db")["processes"], 1);
  EXPECT_EQ(info("t1.db")["processes"], 1);
}

TEST_F(Launchers, AKilledLauncherIsNotWaitedFor) {
  Process first(trace({"-o", "t.db"}, {"ops", "5", "touch", "a", "await", "go"}), here(task(0, 2)));
  ASSERT_TRUE(wait_until([&] { return exists("a"); }));
  Process second(trace({"-o", "t.db"}, {"ops", "5", "touch", "b", "await", "go"}), here(task(1, 2)));
  ASSERT_TRUE(wait_until([&] { return exists("b"); }));
  kill(first.pid(), SIGKILL);
  ASSERT_TRUE(wait_until([&] {
    return read_file("/proc/" + std::to_string(first.pid()) + "/stat").find(") Z") != std::string::npos;
  }));
  write_file(path("go"), "");
  const Finished last = second.wait();
  EXPECT_EQ(last.code, 0) << last;
  first.wait();
  ASSERT_TRUE(exists("t.db")) << last;
  EXPECT_EQ(info("t.db")["processes"], 2);  // the killed one's job went on, and its file is whole
}

TEST_F(Launchers, OneWhoseCommandCannotStartMergesWhatOthersRecorded) {
  Process first(trace({"-o", "t.db"}, {"ops", "5"}), here(task(0, 2)));
  // It waits for the second one, which shall be the last to look.
  ASSERT_TRUE(wait_until([&] {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path("t.run/launchers"), error)) {
      if (has(read_file(entry.path()), "\"left\"")) return true;
    }
    return false;
  }));
  kill(first.pid(), SIGSTOP);
  const Finished second = do_here(lockstep({"trace", "-o", "t.db", "./nowhere"}), task(1, 2));
  EXPECT_EQ(second.code, 127) << second;
  EXPECT_TRUE(has(second.err, "command not found")) << second;
  EXPECT_EQ(info("t.db")["ops"], 5) << second;
  EXPECT_FALSE(exists("t.run"));
  kill(first.pid(), SIGKILL);
  first.wait();
}

}  // namespace
}  // namespace lockstep::test
