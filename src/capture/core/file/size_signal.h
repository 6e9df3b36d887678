// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace lockstep::capture {

// To grow beyond the process's file size limit raises SIGXFSZ, which would end the host; the error is enough.
class WithoutSizeSignal {
 public:
  // For its thread alone, while it lives. A signal that came meanwhile is taken before the old mask comes
  // back.
  WithoutSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~WithoutSizeSignal() {
    if (sigismember(&before_, SIGXFSZ)) return;
    int error = errno;
    timespec now{};
    sigtimedwait(&signal_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSizeSignal(const WithoutSizeSignal&) = delete;
  WithoutSizeSignal& operator=(const WithoutSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
};

}  // namespace lockstep::capture
