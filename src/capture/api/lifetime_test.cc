// SPDX-License-Identifier: Apache-2.0
// What happens to a recording when its process forks or ends, and when nothing may be recorded.
#include <pthread.h>
#include <sys/wait.h>

#include <thread>

#include "capture/api/api_test.h"

namespace lockstep::test {
namespace {

using format::Kind;

class LifetimeTest : public ApiCapture {
 protected:
  static lockstep_op one_operation() {
    lockstep_op op = lockstep_begin(declare_pair(), "allreduce", 1, 1, "Float", nullptr);
    lockstep_end(op, nullptr);
    return op;
  }
  // Runs the body in a child of this process; true if it ends with status 0.
  template <class Body>
  static bool forked(Body body) {
    pid_t pid = fork();
    if (pid == 0) _exit(body() ? 0 : 1);
    int status = 0;
    return waitpid(pid, &status, 0) == pid && status == 0;
  }
};

TEST_F(LifetimeTest, AForkedChildRecordsNothing) {
  LksFile file = record([] {
    lockstep_op op = one_operation();
    EXPECT_TRUE(forked([op] {
      lockstep_end(op, nullptr);
      lockstep_step(1);
      bool silent = one_operation() == 0 && declare_pair() == 0;
      return silent;
    }));
    one_operation();
  });
  EXPECT_EQ(file.count(Kind::kApiOp), 2u);
  EXPECT_EQ(file.count(Kind::kMark), 0u);
  EXPECT_EQ(file.state(), format::FileState::kClosed);
  EXPECT_GT(file.lost(capture::kLoss_after_fork), 0u);
}

TEST_F(LifetimeTest, ChildrenOfAParentWithoutCallsRecordThemselves) {
  Exit parent = run_child(settings(), [] {
    EXPECT_EQ(lockstep_loaded(), 1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(forked([] { return one_operation() != 0; }));
    }
  });
  EXPECT_TRUE(parent.ok()) << parent;
  std::vector<std::string> files = run_.files();
  ASSERT_EQ(files.size(), 3u);
  for (const std::string& path : files) EXPECT_EQ(LksFile(path).count(Kind::kApiOp), 1u);
}

TEST_F(LifetimeTest, OffMakesNoFile) {
  Exit exit = run_child(settings("off"), [] {
    EXPECT_EQ(lockstep_loaded(), 1);
    EXPECT_EQ(declare_pair(), 0u);
    EXPECT_EQ(one_operation(), 0u);
    lockstep_step(1);
    lockstep_mark("m", 1);
    lockstep_end(12345, nullptr);
  });
  EXPECT_TRUE(exit.ok()) << exit;
  EXPECT_TRUE(run_.files().empty());
}

TEST_F(LifetimeTest, ADirectoryThatCannotBeMadeIsNoError) {
  Environment environment = settings();
  environment[1].second = "/proc/no/such/directory";
  EXPECT_TRUE(run_child(environment, [] { EXPECT_EQ(one_operation(), 0u); }).ok());
}

TEST_F(LifetimeTest, WhatWasRecordedOutlivesAKill) {
  Child child = Child::start(settings(), [] {
    for (int i = 0; i < 1000; ++i) one_operation();
    lockstep_begin(declare_pair(), "allreduce", 1, 1, "Float", nullptr);
    kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(child.wait().signal, SIGKILL);
  LksFile file = run_.file();
  EXPECT_EQ(file.count(Kind::kApiOp), 1001u);
  EXPECT_EQ(file.state(), format::FileState::kOpen);
}

TEST_F(LifetimeTest, ThreadsThatEndLeaveTheirRecordsAndTheirSlots) {
  constexpr int kThreads = 1500;  // more than there are slots
  LksFile file = record([] {
    for (int i = 0; i < kThreads; ++i) std::thread(one_operation).join();
  });
  EXPECT_EQ(file.count(Kind::kApiOp), static_cast<size_t>(kThreads));
  EXPECT_EQ(file.logs(), 1u);
  EXPECT_EQ(file.lost(), 0u);
}

TEST_F(LifetimeTest, CallsAfterTheFileWasClosedAreHarmless) {
  static auto late = [] {
    std::thread(one_operation).join();
    one_operation();
  };
  // Registered before the library is loaded, so that it runs after the library's own end.
  LksFile file = record([] {
    atexit([] { late(); });
    one_operation();
  });
  EXPECT_GE(file.count(Kind::kApiOp), 1u);
}

}  // namespace
}  // namespace lockstep::test
