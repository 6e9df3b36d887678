// SPDX-License-Identifier: Apache-2.0
// A kernel is recorded when it is launched and again when it has ended, by the records of the HSA library:
// a killed process leaves what never ended. The handle of the first record travels with the kernel, in the
// word that the SDK keeps for us.
#include "capture/rocp/dispatches.h"

#include <string.h>

#include <atomic>

#include "capture/core/log/thread_log.h"
#include "capture/core/session/session.h"
#include "capture/hsa/counters.h"
#include "capture/hsa/kernel_objects.h"
#include "capture/rocp/agents.h"
#include "format/records.h"

namespace lockstep::capture::rocp {
namespace {

// A queue takes a slot at its first kernel and keeps it: its number is the slot's, from 1. Numbers of the SDK
// are never given again.
struct SeenQueue {
  std::atomic<uint64_t> id_plus_1;     // 0: free
  std::atomic<uint32_t> agent_plus_1;  // 0: not yet
  std::atomic<uint32_t> sequence;
};
SeenQueue g_queues[kMostQueues];
bool g_defined[kMostQueues];
std::atomic<format::Mode> g_mode{format::Mode::kOff};
std::atomic<uint64_t> g_counts[format::kMostHsaCounters];
uint64_t g_written[format::kMostHsaCounters];  // the newest definition

void count(hsa::Counter counter) { g_counts[counter].fetch_add(1, std::memory_order_relaxed); }

// kMostQueues: there are too many.
uint32_t slot_of(uint64_t queue, uint32_t agent) {
  for (uint32_t slot = 0; slot < kMostQueues; ++slot) {
    uint64_t there = g_queues[slot].id_plus_1.load(std::memory_order_acquire);
    if (there == queue + 1) return slot;
    if (there == 0 &&
        g_queues[slot].id_plus_1.compare_exchange_strong(there, queue + 1, std::memory_order_acq_rel)) {
      g_queues[slot].agent_plus_1.store(agent + 1, std::memory_order_release);
      count(hsa::kCount_queues);
      return slot;
    }
    if (there == queue + 1) return slot;  // another thread was first
  }
  return kMostQueues;
}

// The handle of its record; 0: not recorded.
uint64_t record_launch(const DispatchInfo& info) {
  count(hsa::kCount_calls);
  count(hsa::kCount_packets);
  const format::Mode mode = g_mode.load(std::memory_order_relaxed);
  ThreadLog* log = mode == format::Mode::kOff ? nullptr : ThreadLog::get();
  if (log == nullptr) return count(hsa::kCount_shutdown), 0;
  const hsa::KernelObject kernel = hsa::find_kernel(key_of_kernel(info.kernel));
  if (mode == format::Mode::kLite && kernel.rccl == hsa::Rccl::kNone) return count(hsa::kCount_other_mode), 0;
  const uint32_t agent = agent_number(info.agent), slot = slot_of(info.queue, agent);
  auto* record = slot == kMostQueues ? nullptr : log->reserve<format::DispatchRecord>();
  if (record == nullptr) return count(hsa::kCount_no_room), 0;
  if (kernel.number != 0)
    hsa::use_kernel(kernel.number);
  else
    count(hsa::kCount_unresolved);
  record->head.start = read_ticks();
  record->arguments = 0;  // the SDK does not show them
  record->symbol = kernel.number;
  record->sequence = g_queues[slot].sequence.fetch_add(1, std::memory_order_relaxed) + 1;
  record->queue = static_cast<uint16_t>(slot + 1);
  record->agent = static_cast<uint16_t>(agent);
  for (int i = 0; i < 3; ++i) {
    record->grid[i] = info.grid[i];
    record->group[i] = static_cast<uint16_t>(info.group[i]);
  }
  record->untimed = format::Untimed::kNone;
  record->reserved0 = 0;
  record->private_bytes = info.private_bytes;
  record->group_bytes = info.group_bytes;
  count(hsa::kCount_injected);
  return log->publish(record, format::Kind::kDispatch, 0, 0);
}

void record_end(uint64_t dispatch, const Dispatch& ended) {
  ThreadLog* log = ThreadLog::get();
  auto* record = log == nullptr ? nullptr : log->reserve<format::GpuTimesRecord>();
  if (record == nullptr) return count(hsa::kCount_unwritten);
  record->head.start = read_ticks();
  record->target = dispatch;
  record->gpu_start = ended.start;
  record->gpu_stop = ended.stop;
  record->clock = format::TimesClock::kAgent;
  record->problem = ended.start == 0 || ended.stop == 0 ? format::TimesProblem::kNotStamped
                    : ended.stop <= ended.start         ? format::TimesProblem::kDisordered
                                                        : format::TimesProblem::kNone;
  record->reserved0 = 0;
  count(record->problem == format::TimesProblem::kNone         ? hsa::kCount_recorded
        : record->problem == format::TimesProblem::kNotStamped ? hsa::kCount_not_stamped
                                                               : hsa::kCount_disordered);
  log->publish(record, format::Kind::kGpuTimes, 0, 0);
  ThreadLog::note_times(dispatch);
}

}  // namespace

void record_mode(const Recording& recording) { g_mode.store(recording.mode, std::memory_order_relaxed); }

void on_dispatch(CallbackRecord record, uint64_t* own, void*) {
  const auto* dispatch = static_cast<const Dispatch*>(record.payload);
  if (record.kind != kKernelDispatch || dispatch == nullptr || dispatch->bytes < sizeof *dispatch) return;
  if (record.operation == kEnqueue && record.phase == kEnter) {
    *own = record_launch(dispatch->info);
  } else if (record.operation == kComplete && *own != 0) {
    record_end(*own, *dispatch);
  }
}

void define_queues() {
  for (uint32_t slot = 0; slot < kMostQueues; ++slot) {
    const uint64_t there = g_queues[slot].id_plus_1.load(std::memory_order_acquire);
    if (there == 0) return;
    const uint32_t agent_plus_1 = g_queues[slot].agent_plus_1.load(std::memory_order_acquire);
    if (agent_plus_1 == 0 || g_defined[slot]) continue;
    g_defined[slot] = true;
    format::GpuQueueDef def{};
    def.queue_id = there - 1;
    def.agent = static_cast<uint16_t>(agent_plus_1 - 1);
    def.state = format::QueueState::kTraced;
    Session::get().add_definition(format::Def::kGpuQueue, slot + 1, &def.head, sizeof def);
  }
}

void write_counters() {
  format::HsaCountersDef def{};
  // Ends first, so that no kernel seems to have ended before it was launched.
  constexpr hsa::Counter kEnds[] = {hsa::kCount_recorded, hsa::kCount_not_stamped, hsa::kCount_disordered,
                                    hsa::kCount_unwritten};
  uint64_t ends[4], ended = 0;
  for (int i = 0; i < 4; ++i) ended += ends[i] = g_counts[kEnds[i]].load(std::memory_order_acquire);
  for (uint32_t i = 0; i < format::kMostHsaCounters; ++i)
    def.counts[i] = g_counts[i].load(std::memory_order_relaxed);
  for (int i = 0; i < 4; ++i) def.counts[kEnds[i]] = ends[i];
  def.counts[hsa::kCount_unfinished] = def.counts[hsa::kCount_injected] - ended;
  def.counts[hsa::kCount_executables] = hsa::executables();
  if (memcmp(def.counts, g_written, sizeof g_written) == 0) return;
  memcpy(g_written, def.counts, sizeof g_written);
  Session::get().add_definition(format::Def::kHsaCounters, 0, &def.head, sizeof def);
}

const uint64_t* written_counters() { return g_written; }

}  // namespace lockstep::capture::rocp
