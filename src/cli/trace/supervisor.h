// SPDX-License-Identifier: Apache-2.0
// Runs the traced command and waits for it and for all that it leaves behind.
//
// The command runs in our process group with our stdin, stdout and stderr, and the signal mask and
// dispositions that we were started with. SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that come to
// us alone are passed on; those that the terminal or anyone else sends to the group reach the command by
// themselves. None of them ends us before the command has ended.
//
// Make it before any thread: it blocks these signals in the calling thread, and only that thread may use it.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/trace/group_sentinel.h"

namespace lockstep::cli::trace {

// What a shell would return for a command that cannot be run.
inline constexpr int kExitNotExecutable = 126, kExitNotFound = 127, kExitSignal = 128;

class Supervisor {
 public:
  Supervisor();
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // 0, or the errno with which the command could not be started.
  int start(const std::vector<std::string>& argv);
  // Waits for the command; its exit code, or 128 + the signal that ended it.
  int wait_for_command();
  // Waits for descendants that the command has left behind, and calls `waiting` once when that takes longer
  // than a second. False if a signal ended the waiting.
  bool wait_for_descendants(const std::function<void()>& waiting);
  // From now on the first such signal calls `stop` on another thread, and the process ends with 128 + signal.
  void end_on_signal(std::function<void(int signal)> stop);
  // Runs `work` in a child of its own beside the command, until end_helper(). A terminal's signals do not
  // reach it, it ends with us, and when memory or the CPU is short, it goes before the job. Without threads,
  // and once.
  void start_helper(const std::function<int()>& work);
  // Asks it to end and waits a few seconds, no longer. False: it had not done its work by then.
  bool end_helper();
  // Whether a child of ours is none of the user's. Any thread.
  bool is_own(int64_t pid) const { return pid > 0 && (pid == sentinel_.pid() || pid == helper_); }

 private:
  void pass_on(const siginfo_t& signal);
  // Reaps what has ended; the command's status goes to command_status_.
  void reap();
  bool has_only_helper() const;

  sigset_t original_{}, watched_{};
  GroupSentinel sentinel_;
  std::atomic<pid_t> helper_{-1};
  pid_t command_ = -1;
  int command_status_ = -1;
  bool reaped_all_ = false;
};

}  // namespace lockstep::cli::trace
