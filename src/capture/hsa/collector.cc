// SPDX-License-Identifier: Apache-2.0
// Times are read off the signals by a thread of ours, or at the queue's next launch, and never by a handler
// of the runtime's: no host thread then stands between a kernel and the program's own signal. The thread naps
// longer while nothing ends (docs/decisions/0017-amd-by-the-tools-interface.md).
#include "capture/hsa/collector.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <atomic>

#include "capture/core/clock.h"
#include "capture/core/locked.h"
#include "capture/core/log/thread_log.h"
#include "capture/core/own_thread.h"
#include "capture/core/session/session.h"
#include "capture/hsa/agents.h"
#include "capture/hsa/counter_block.h"
#include "capture/hsa/kernel_objects.h"
#include "capture/hsa/queues.h"
#include "format/cuda_setting.h"
#include "format/hsa_setting.h"

namespace lockstep::capture::hsa {
namespace {

constexpr int64_t kMicrosecond = 1000, kMillisecond = 1000 * kMicrosecond, kSecond = 1000 * kMillisecond;
constexpr int64_t kShortestNap = 200 * kMicrosecond, kLongestNap = 5 * kMillisecond;
constexpr int64_t kClockEvery = kSecond, kCountersEvery = 2 * kSecond, kLongestDrain = 100 * kMillisecond;

pthread_mutex_t g_turn = PTHREAD_MUTEX_INITIALIZER;  // who collects: the thread, or a drain
std::atomic<bool> g_is_started{false}, g_is_over{true};
int64_t g_clock_ns = 0, g_counters_ns = 0;
uint64_t g_written[format::kMostHsaCounters];

void nap(int64_t ns) {
  const timespec pause{ns / kSecond, ns % kSecond};
  nanosleep(&pause, nullptr);
}

// Definitions stay for as long as the process lives: a ring gets fewer.
int64_t every(int64_t ns) { return Session::get().file().ring() ? 16 * ns : ns; }

void place_clocks() {
  for (uint32_t i = 0; i < agent_count(); ++i) place_clock(g_runtime, i);
  g_clock_ns = clock_ns(CLOCK_MONOTONIC);
}

void write_counters() {
  format::HsaCountersDef def{};
  sum_counters(def.counts);
  def.counts[kCount_executables] = executables();
  g_counters_ns = clock_ns(CLOCK_MONOTONIC);
  // The newest definition counts, so an idle process writes none.
  if (memcmp(def.counts, g_written, sizeof g_written) == 0) return;
  memcpy(g_written, def.counts, sizeof g_written);
  Session::get().add_definition(format::Def::kHsaCounters, 0, &def.head, sizeof def);
}

// Names come before what ends, so that a reader of a running process finds them.
uint64_t look(uint64_t* open) {
  define_used_kernels();
  const uint64_t collected = collect_all(ThreadLog::get(), open);
  const int64_t now = clock_ns(CLOCK_MONOTONIC);
  // A clock is placed by the stamp of a kernel: where none ended there is nothing to place.
  if (collected != 0 && (g_clock_ns == 0 || now - g_clock_ns >= every(kClockEvery))) place_clocks();
  if (now - g_counters_ns >= every(kCountersEvery)) write_counters();
  return collected;
}

void* run(void*) {
  prctl(PR_SET_NAME, "lockstep-hsa");
  int64_t interval = kShortestNap;
  for (;;) {
    {
      Locked locked(&g_turn);
      if (!g_is_over) {
        if (!Session::get().running()) return nullptr;
        uint64_t open = 0;
        interval = look(&open) != 0 ? kShortestNap : interval * 2 < kLongestNap ? interval * 2 : kLongestNap;
      } else {
        // The runtime has ended; the thread stays, as a program may start the next one.
        interval = kLongestNap;
      }
    }
    nap(interval);
  }
}

}  // namespace

bool start_collector() {
  g_is_over = false;
  // One thread for the life of the process, whatever number of runtimes it sees.
  if (g_is_started.exchange(true)) return true;
  return start_thread(run, nullptr) == 0;
}

void drain() {
  if (g_is_over || !Session::get().running()) return;
  const int64_t until = clock_ns(CLOCK_MONOTONIC) + kLongestDrain;
  // At exit nothing waits without a bound, not even for our own thread.
  if (!lock_until(&g_turn, until + kSecond)) return;
  uint64_t open = 0;
  for (look(&open); open != 0 && clock_ns(CLOCK_MONOTONIC) < until; look(&open)) nap(kMillisecond);
  place_clocks();
  write_counters();
  g_is_over = true;
  pthread_mutex_unlock(&g_turn);
  if (format::has_word(getenv(format::kHsaSetting), format::kHsaPrint)) print_counters(g_written);
}

void stop_collector() {
  drain();
  g_is_over = true;
}

}  // namespace lockstep::capture::hsa
