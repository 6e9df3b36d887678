// SPDX-License-Identifier: Apache-2.0
// Signals reach the traced command once, whoever they were sent to, and never cost the trace.
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

class Signals : public Workplace {
 protected:
  // A job that says when it is ready, counts a signal, and exits with how often it came.
  static Argv counting(int signal) {
    return {"ops", "10", "count", std::to_string(signal), "touch", "ready", "await-signal", "exit-count"};
  }
  bool ready() const {
    return wait_until([&] { return exists("ready"); });
  }
};

TEST_F(Signals, CtrlCReachesTheCommandOnce) {
  Surroundings around = here();
  around.terminal = true;
  Process process(trace({}, counting(SIGINT)), around);
  ASSERT_TRUE(ready());
  process.type("\x03");
  Finished finished = process.wait();
  EXPECT_EQ(finished.code, 1) << finished;
  EXPECT_EQ(info("trace.db")["ops"], 10);
}

TEST_F(Signals, ASignalToTheGroupReachesTheCommandOnce) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGQUIT}) {
    std::filesystem::remove(path("ready"));
    Process process(trace({}, counting(signal)), here());
    ASSERT_TRUE(ready());
    kill(-process.pid(), signal);
    EXPECT_EQ(process.wait().code, 1) << signal;
  }
}

TEST_F(Signals, ASignalToTheLauncherIsPassedOn) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR2}) {
    std::filesystem::remove(path("ready"));
    Process process(trace({}, counting(signal)), here());
    ASSERT_TRUE(ready());
    kill(process.pid(), signal);
    EXPECT_EQ(process.wait().code, 1) << signal;
  }
}

// A command may signal whoever started it; that does not come back to it.
TEST_F(Signals, WhatTheCommandSendsToTheLauncherIsNotPassedOn) {
  const Finished finished = do_here(
      lockstep({"trace", "-o", "t.db", "sh", "-c",
                "trap 'n=1' USR1; kill -USR1 $PPID; for i in 1 2 3 4 5; do sleep 0.2; done; exit ${n:-7}"}));
  EXPECT_EQ(finished.code, 7) << finished;
}

TEST_F(Signals, AnInterruptedCommandLeavesItsTrace) {
  for (int signal : {SIGINT, SIGTERM}) {
    std::filesystem::remove(path("ready"));
    Process process(trace({}, {"ops", "10", "touch", "ready", "sleep", "20000"}), here());
    ASSERT_TRUE(ready());
    kill(-process.pid(), signal);
    Finished finished = process.wait();
    EXPECT_EQ(finished.code, 128 + signal) << finished;
    EXPECT_EQ(info("trace.db")["ops"], 10);
  }
}

TEST_F(Signals, CtrlCStopsWaitingForWorkers) {
  Process process(trace({}, {"ops", "10", "orphan", "ops", "5", "touch", "ready", "count", "2", "await", "go",
                             "ops", "6"}),
                  here());
  ASSERT_TRUE(ready());
  // Once the command has ended, the worker is the launcher's only child.
  std::string children =
      "/proc/" + std::to_string(process.pid()) + "/task/" + std::to_string(process.pid()) + "/children";
  ASSERT_TRUE(wait_until([&] {
    std::string list = read_file(children);
    return std::count(list.begin(), list.end(), ' ') == 1;
  }));
  kill(process.pid(), SIGINT);
  ASSERT_TRUE(
      wait_until([&] { return has(read_file("/proc/" + std::to_string(process.pid()) + "/stat"), ") Z"); }));
  write_file(path("go"), "");
  Finished finished = process.wait();
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(info("trace.db")["ops"], 15);
  // The worker went on: its file was not taken away from it.
  EXPECT_TRUE(has(finished.err, "may still write")) << finished;
  EXPECT_TRUE(wait_until([&] { return info("trace.run")["ops"] == 21; }));
}

TEST_F(Signals, ASignalDuringTheMergeKeepsTheRawFiles) {
  Process process(trace({"-o", "t.db"}, {"ops", "400000"}), here());
  ASSERT_TRUE(wait_until([&] { return exists("t.run/merge.lock"); }));
  kill(process.pid(), SIGINT);
  Finished finished = process.wait();
  EXPECT_EQ(finished.code, 128 + SIGINT) << finished;
  EXPECT_TRUE(has(finished.err, "the raw files are kept")) << finished;
  EXPECT_FALSE(exists("t.db"));
  EXPECT_EQ(names(), Argv{"t.run"});
  EXPECT_FALSE(exists("t.run/merge.lock"));
  finished = do_here(lockstep({"merge", "-o", "t.db", "t.run"}));
  EXPECT_EQ(finished.code, 0) << finished;
  auto document = info("t.db");
  uint64_t total = document["ops"];
  for (const auto& loss : document["losses"]) total += loss["count"].get<uint64_t>();
  EXPECT_EQ(total, 400000);
}

TEST_F(Signals, DispositionsAreInherited) {
  Finished finished =
      do_here({"sh", "-c",
               std::string("trap '' USR1; exec ") + LOCKSTEP_BIN_DIR "/lockstep trace -o t.db " +
                   LOCKSTEP_E2E_JOB + " ops 1 signal " + std::to_string(SIGUSR1) + " exit 6"});
  EXPECT_EQ(finished.code, 6) << finished;
}

}  // namespace
}  // namespace lockstep::test
