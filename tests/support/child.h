// SPDX-License-Identifier: Apache-2.0
// Runs a piece of a test in a child process, where a capture library can be loaded afresh. The test program
// itself never loads one. A failed EXPECT in the child fails the test, as does a death that was not asked
// for.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/patience.h"
#include "tests/support/sanitizers.h"

// Tests fork from processes that have threads; the child only calls what a fork may call. The search for
// leaks stops threads that such a child does not have.
#if defined(__SANITIZE_THREAD__)
extern "C" __attribute__((used)) inline const char* __tsan_default_options() {
  return "die_after_fork=0:halt_on_error=1:report_thread_leaks=0";
}
#elif defined(__SANITIZE_ADDRESS__)
extern "C" __attribute__((used)) inline const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace lockstep::test {

inline double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
inline void sleep_ms(long ms) {
  timespec time{ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

struct Exit {
  int code = -1;  // exit status, -1 if a signal ended it
  int signal = 0;
  bool ok() const { return code == 0; }
};
inline std::ostream& operator<<(std::ostream& out, const Exit& exit) {
  return out << "exit code " << exit.code << ", signal " << exit.signal;
}

using Environment = std::vector<std::pair<std::string, std::string>>;

class Child {
 public:
  template <class Body>
  static Child start(const Environment& environment, Body body) {
    fflush(stdout);
    fflush(stderr);
    Child child;
    child.started_ = seconds_now();
    child.pid_ = fork();
    if (child.pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      body();
      fflush(stdout);
      exit(::testing::Test::HasFailure() ? 99 : 0);
    }
    return child;
  }
  pid_t pid() const { return pid_; }
  // Waits for its end, longer than the child waits for anything; one that hangs is killed and shows as
  // signal 9.
  Exit wait() {
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (seconds_now() - started_ > 2 * kPatienceSeconds) kill(pid_, SIGKILL);
      sleep_ms(1);
    }
    Exit exit;
    exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return exit;
  }

 private:
  pid_t pid_ = -1;
  double started_ = 0;
};

template <class Body>
Exit run_child(const Environment& environment, Body body) {
  return Child::start(environment, std::move(body)).wait();
}

}  // namespace lockstep::test
