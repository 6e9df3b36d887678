// SPDX-License-Identifier: Apache-2.0
// A signal shows on /proc/PID/status of a process that blocks it for as long as it is pending. A sentinel
// that took one is used up: the bit cannot be cleared from outside. So it is replaced by a new one after each
// signal that it saw.
#include "cli/trace/group_sentinel.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "run/small_file.h"

namespace lockstep::cli::trace {
namespace {

// kill(-group) walks the group; this is longer than it needs to reach the last member.
constexpr useconds_t kGroupWalkUs = 20'000;

// Behind a fork of a program with several threads: system calls alone.
void close_all() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 0U, ~0U, 0U) == 0) return;
#endif
  constexpr rlim_t kMost = rlim_t{1} << 20;  // where there is no limit
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = kMost;
  for (rlim_t fd = 0; fd < std::min(files.rlim_cur, kMost); ++fd) close(static_cast<int>(fd));
}

}  // namespace

void GroupSentinel::begin() {
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    // If the parent died before this line, no signal comes: the check of getppid() is for that.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "lockstep-group");
    if (getppid() != parent) _exit(0);
    // Whoever waits for the end of our output must not wait for the sentinel.
    close_all();
    for (;;) pause();
  }
  pid_ = pid;
}

void GroupSentinel::end() {
  pid_t pid = pid_.exchange(-1);
  if (pid <= 0) return;
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool GroupSentinel::saw(int signal) {
  if (pid_ <= 0) return false;
  usleep(kGroupWalkUs);
  std::string status = run::read_small("/proc/" + std::to_string(pid_) + "/status", 16384).value_or("");
  size_t at = status.find("ShdPnd:");
  if (at == std::string::npos) return false;
  unsigned long long pending = std::strtoull(status.c_str() + at + 7, nullptr, 16);
  if ((pending >> (signal - 1) & 1) == 0) return false;
  end();
  begin();
  return true;
}

}  // namespace lockstep::cli::trace
