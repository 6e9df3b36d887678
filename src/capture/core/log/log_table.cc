// SPDX-License-Identifier: Apache-2.0
// Slots are taken by compare-and-swap from the front, so that the slots in use stay together and readers of
// all logs look at few.
#include "capture/core/log/log_table.h"

namespace lockstep::capture {

constinit LogTable LogTable::table{};

ThreadLog* LogTable::take() {
  if (taken() >= format::kMaxLogs) return nullptr;
  for (uint32_t slot = 0; slot < format::kMaxLogs; ++slot) {
    // Acquire: the next thread sees all that the thread before stored in the log.
    bool free = false;
    if (__atomic_load_n(&in_use_[slot], __ATOMIC_RELAXED) ||
        !__atomic_compare_exchange_n(&in_use_[slot], &free, true, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    __atomic_fetch_add(&taken_, 1, __ATOMIC_RELAXED);
    // The highest slot ever taken bounds what others look at; it never falls.
    uint32_t seen = __atomic_load_n(&used_, __ATOMIC_RELAXED);
    while (seen < slot + 1 &&
           !__atomic_compare_exchange_n(&used_, &seen, slot + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return &logs_[slot];
  }
  return nullptr;
}

void LogTable::give_back(ThreadLog* log) {
  __atomic_store_n(&in_use_[log - logs_], false, __ATOMIC_RELEASE);
  __atomic_fetch_sub(&taken_, 1, __ATOMIC_RELAXED);
}

void LogTable::make_key(void (*end)(void*)) { has_key_ = pthread_key_create(&key_, end) == 0; }

void LogTable::at_thread_end(ThreadLog* log) {
  if (has_key_) pthread_setspecific(key_, log);
}

}  // namespace lockstep::capture
