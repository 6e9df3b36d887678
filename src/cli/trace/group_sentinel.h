// SPDX-License-Identifier: Apache-2.0
// Tells whether a signal went to the whole process group or to this process alone. kill() does not say, and
// passing on what the traced command has already received would interrupt it twice. The sentinel is a child
// in the same group that blocks every signal: a signal to the group stays pending on it.
//
// The signals asked about must be blocked when it is made. It ends with this process.
#pragma once
#include <sys/types.h>

#include <atomic>

namespace lockstep::cli::trace {

class GroupSentinel {
 public:
  GroupSentinel() { begin(); }
  GroupSentinel(const GroupSentinel&) = delete;
  GroupSentinel& operator=(const GroupSentinel&) = delete;
  ~GroupSentinel() { end(); }
  // Whether the group received `signal` since the last call that returned true.
  bool saw(int signal);
  pid_t pid() const { return pid_; }  // any thread
  void end();

 private:
  void begin();
  std::atomic<pid_t> pid_{-1};
};

}  // namespace lockstep::cli::trace
