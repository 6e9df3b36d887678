// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace lockstep::cli {
namespace {

std::atomic<bool> signalled{false};  // also read by other threads than the one that is interrupted
int wish[2] = {-1, -1};              // a pipe

void note_signal(int) {
  int error = errno;
  signalled = true;
  [[maybe_unused]] ssize_t written = write(wish[1], "", 1);
  errno = error;
}

}  // namespace

Interrupt::Interrupt(Second second) {
  signalled = false;
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
  if (!wanted()) poll(&until, 1, static_cast<int>(time.count()));
  return wanted();
}

int Interrupt::descriptor() const { return wish[0]; }

}  // namespace lockstep::cli
