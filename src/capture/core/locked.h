// SPDX-License-Identifier: Apache-2.0
// Holds a mutex for as long as it lives. Not for the event path.
#pragma once
#include <pthread.h>

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

}  // namespace lockstep::capture
