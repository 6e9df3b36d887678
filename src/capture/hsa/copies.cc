// SPDX-License-Identifier: Apache-2.0
// A copy's signal is exchanged for one of ours, of a fixed pool, and the program's gets the stamps and its
// value when ours has been seen: the program may read times from its own.
#include "capture/hsa/copies.h"

#include <string.h>

#include <atomic>

#include "capture/core/log/thread_log.h"
#include "capture/core/session/session.h"
#include "capture/hsa/agents.h"
#include "capture/hsa/packets.h"
#include "capture/hsa/queues.h"
#include "format/records.h"

namespace lockstep::capture::hsa {
namespace {

struct Copy {
  Signal ours, theirs;
  uint64_t record;  // handle
  std::atomic<bool> is_taken;
};
Copy g_copies[kMostCopies];
uint32_t g_count = 0;  // with a signal
std::atomic<uint32_t> g_next{0};

Copy* take() {
  // In turn: the one that was taken longest ago is most likely free.
  const uint32_t first = g_next.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t i = 0; i < g_count; ++i) {
    Copy& copy = g_copies[(first + i) % g_count];
    if (!copy.is_taken.load(std::memory_order_relaxed) &&
        !copy.is_taken.exchange(true, std::memory_order_acquire))
      return &copy;
  }
  return nullptr;
}

uint16_t number_of(Agent agent) {
  const uint32_t number = agent_number(agent);
  return number == kMostAgents ? format::kHostAgent : static_cast<uint16_t>(number);
}

void record_times(const Copy& copy, bool has_times, const Times& times) {
  ThreadLog* log = ThreadLog::get();
  auto* record = log == nullptr ? nullptr : log->reserve<format::GpuTimesRecord>();
  if (record == nullptr) return;
  const bool is_good = has_times && times.start != 0 && times.stop >= times.start;
  record->head.start = read_ticks();
  record->target = copy.record;
  record->gpu_start = times.start;
  record->gpu_stop = times.stop;
  record->clock = format::TimesClock::kSystem;
  record->problem = is_good     ? format::TimesProblem::kNone
                    : has_times ? format::TimesProblem::kDisordered
                                : format::TimesProblem::kNotStamped;
  record->reserved0 = 0;
  log->publish(record, format::Kind::kGpuTimes, 0, 0);
  ThreadLog::note_times(copy.record);
  if (is_good) count(kCount_copies_recorded);
}

// What a program may ask its own signal for: the stamps of kernels, and those of copy engines behind them.
void pass_on(const Copy& copy) {
  constexpr size_t kStamps = offsetof(SignalMemory, start), kStampBytes = 16, kEngineStart = 64,
                   kEngineStop = 96;
  const char* from = reinterpret_cast<const char*>(copy.ours.handle);
  char* to = reinterpret_cast<char*>(copy.theirs.handle);
  memcpy(to + kStamps, from + kStamps, kStampBytes);
  memcpy(to + kEngineStart, from + kEngineStart, sizeof(uint64_t));
  memcpy(to + kEngineStop, from + kEngineStop, sizeof(uint64_t));
  g_runtime.signal_subtract(copy.theirs, 1);
}

bool on_end(int64_t, void* data) {
  Copy& copy = *static_cast<Copy*>(data);
  Times times{};
  const bool has_times = g_runtime.get_copy_time(copy.ours, &times) == kSuccess;
  // The program first, as it may be waiting; our record can be late.
  pass_on(copy);
  if (copy.record != 0) record_times(copy, has_times, times);
  // Ready for its next copy before anybody can take it.
  g_runtime.signal_store(copy.ours, 1);
  copy.is_taken.store(false, std::memory_order_release);
  // The runtime then forgets the handler; the next copy brings its own.
  return false;
}

uint64_t record_copy(uint16_t to, uint16_t from, size_t bytes) {
  ThreadLog* log = ThreadLog::get();
  auto* record = log == nullptr ? nullptr : log->reserve<format::QueuedCopyRecord>();
  if (record == nullptr) return 0;
  record->head.start = read_ticks();
  record->bytes = bytes;
  record->from = from;
  record->to = to;
  record->reserved0 = 0;
  return log->publish(record, format::Kind::kQueuedCopy, 0, 0);
}

template <class Submit>
Status submit(Agent to, Agent from, size_t bytes, Signal theirs, Submit&& submit_with) {
  const bool is_wanted = theirs.handle != 0 && Session::get().running() &&
                         g_packet_settings.mode.load(std::memory_order_relaxed) > format::Mode::kLite;
  Copy* copy = is_wanted ? take() : nullptr;
  if (copy == nullptr) return submit_with(theirs);
  copy->theirs = theirs;
  // Before the runtime has it: the copy may have ended when the call returns.
  copy->record = record_copy(number_of(to), number_of(from), bytes);
  Status status = submit_with(copy->ours);
  if (status == kSuccess) {
    count(kCount_copies);
    status = g_runtime.async_handler(copy->ours, kConditionLess, 1, on_end, copy);
    // Nobody else passes the end on: the caller waits in its place.
    if (status != kSuccess) {
      while (g_runtime.signal_load(copy->ours) > 0) {
        constexpr timespec kPause{0, 50'000};
        nanosleep(&kPause, nullptr);
      }
      on_end(0, copy);
    }
    return kSuccess;
  }
  // The runtime refused the copy: its record ends without times, or it would look as if it were on its way.
  if (copy->record != 0) record_times(*copy, false, {});
  copy->is_taken.store(false, std::memory_order_release);
  return status;
}

}  // namespace

bool begin_copies() {
  g_count = 0;
  while (g_count < kMostCopies &&
         g_runtime.signal_create(1, 0, nullptr, 0, &g_copies[g_count].ours) == kSuccess) {
    g_copies[g_count].is_taken = false;
    ++g_count;
  }
  // Without the second the runtime stamps no copies.
  return g_count > 0 && g_runtime.async_copy_enable(true) == kSuccess;
}

void end_copies() {
  for (uint32_t i = 0; i < g_count; ++i) {
    // The signal of a copy on its way stays with the runtime.
    if (!g_copies[i].is_taken.exchange(true)) g_runtime.signal_destroy(g_copies[i].ours);
  }
  g_count = 0;
}

Status on_memory_async_copy(void* to, Agent to_agent, const void* from, Agent from_agent, size_t bytes,
                            uint32_t count, const Signal* dependencies, Signal completion) {
  return submit(to_agent, from_agent, bytes, completion, [&](Signal signal) {
    return g_runtime.memory_async_copy(to, to_agent, from, from_agent, bytes, count, dependencies, signal);
  });
}

Status on_copy_on_engine(void* to, Agent to_agent, const void* from, Agent from_agent, size_t bytes,
                         uint32_t count, const Signal* dependencies, Signal completion, uint32_t engine,
                         bool force) {
  return submit(to_agent, from_agent, bytes, completion, [&](Signal signal) {
    return g_runtime.copy_on_engine(to, to_agent, from, from_agent, bytes, count, dependencies, signal,
                                    engine, force);
  });
}

}  // namespace lockstep::capture::hsa
