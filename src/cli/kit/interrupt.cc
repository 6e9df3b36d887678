// SPDX-License-Identifier: Apache-2.0
// Turns signals into a wish that loops ask for. A handler may do next to nothing, so it sets a flag and
// writes a byte into a pipe, which wakes whoever is in poll(). With Second::kEnds the handler is removed by
// its first run, so a second Ctrl-C ends a program that does not look.
#include "cli/kit/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>

namespace lockstep::cli {
namespace {

std::atomic<bool> signalled{false};  // also read by other threads than the one that is interrupted
int wish[2] = {-1, -1};              // a pipe

void note_signal(int) {
  // The interrupted code may be about to read errno.
  int error = errno;
  signalled = true;
  // The pipe does not block: a full one is readable already.
  [[maybe_unused]] ssize_t written = write(wish[1], "", 1);
  errno = error;
}

}  // namespace

Interrupt::Interrupt(Second second) {
  signalled = false;
  // Without a pipe the flag alone has to do: other threads notice it when their wait ends.
  if (pipe2(wish, O_CLOEXEC | O_NONBLOCK) != 0) wish[0] = wish[1] = -1;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = second == Second::kEnds ? static_cast<int>(SA_RESETHAND) : 0;
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  for (int& end : wish) {
    if (end >= 0) close(end);
    end = -1;
  }
}

bool Interrupt::wanted() const { return signalled; }

bool Interrupt::wait(std::chrono::milliseconds time) const {
  pollfd until{.fd = wish[0], .events = POLLIN, .revents = 0};
  // poll() takes a longer time, of 25 days, for a negative one: for ever.
  const auto most = std::min<int64_t>(time.count(), INT_MAX);
  // The byte stays in the pipe, so a signal just before poll() wakes it, too.
  if (!wanted()) poll(&until, 1, static_cast<int>(most));
  return wanted();
}

int Interrupt::descriptor() const { return wish[0]; }

}  // namespace lockstep::cli
