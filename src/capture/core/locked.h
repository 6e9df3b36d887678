// SPDX-License-Identifier: Apache-2.0
// Holds a mutex for as long as it lives. Not for the event path.
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <time.h>

namespace lockstep::capture {

class Locked {
 public:
  explicit Locked(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
  ~Locked() { pthread_mutex_unlock(mutex_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  pthread_mutex_t* mutex_;
};

// Waits for the mutex until CLOCK_MONOTONIC reads so; false if somebody else holds it all that time. A step
// of the wall clock neither prolongs nor ends the wait; pthread_mutex_clocklock would do the same, but is
// newer than the oldest glibc we run on.
inline bool lock_until(pthread_mutex_t* mutex, int64_t monotonic_ns) {
  constexpr timespec kPause{0, 1'000'000};
  while (pthread_mutex_trylock(mutex) != 0) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec >= monotonic_ns) return false;
    nanosleep(&kPause, nullptr);
  }
  return true;
}

}  // namespace lockstep::capture
