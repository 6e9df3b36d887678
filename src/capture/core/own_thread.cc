// SPDX-License-Identifier: Apache-2.0
// Threads of ours block all signals, so that no handler of the host runs on a small stack, and none of
// its signals is taken from a thread that waits for it.
#include "capture/core/own_thread.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace lockstep::capture {

int start_thread(void* (*run)(void*), void* argument, size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_init(&attributes);
  if (stack_bytes != 0) pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

void Bell::ring() {
  calls_.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&calls_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// The kernel compares the value once more under its own lock: a call since `calls()` returns at once.
void Bell::nap(uint32_t seen, int64_t ns) {
  timespec timeout{ns / 1000000000, ns % 1000000000};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&calls_), FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
}

}  // namespace lockstep::capture
