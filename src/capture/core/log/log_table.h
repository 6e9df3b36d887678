// SPDX-License-Identifier: Apache-2.0
// The thread logs of a process. A slot is taken with a thread's first event and given back when the thread
// ends; the log in it stays, for the next thread. Any thread; no lock. All zero at load, so that it costs no
// memory until a slot is used.
#pragma once
#include <pthread.h>

#include "capture/core/log/thread_log.h"

namespace lockstep::capture {

class LogTable {
 public:
  static LogTable& get() { return table; }

  // nullptr: all are taken.
  ThreadLog* take();
  void give_back(ThreadLog* log);
  // Once, before any thread has a log: what at_thread_end() calls. Where no key is to be had slots are simply
  // not used again.
  void make_key(void (*end)(void*));
  // Calls `end(log)` when the calling thread ends.
  void at_thread_end(ThreadLog* log);
  // From 1 on, as records name it.
  uint32_t number(const ThreadLog* log) const { return static_cast<uint32_t>(log - logs_) + 1; }
  // nullptr: no thread has ever had it.
  ThreadLog* find(uint32_t number) {
    return number == 0 || number > __atomic_load_n(&used_, __ATOMIC_RELAXED) ? nullptr : &logs_[number - 1];
  }
  // Slots with a thread.
  uint32_t taken() const { return __atomic_load_n(&taken_, __ATOMIC_RELAXED); }

 private:
  static LogTable table;

  ThreadLog logs_[format::kMaxLogs];
  bool in_use_[format::kMaxLogs];  // atomic; the slot has a thread
  uint32_t used_;                  // slots ever used
  uint32_t taken_;
  pthread_key_t key_;
  bool has_key_;
};

}  // namespace lockstep::capture
