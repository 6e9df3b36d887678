// SPDX-License-Identifier: Apache-2.0
// Rewrites batches of packets under the runtime's lock of the queue. A kernel gets a signal of ours so that
// its times can be read; if the program put its own there, a barrier packet behind the kernel bears that one,
// so that the program still sees its kernel end. What cannot be done safely is passed on as it is, and
// counted.
#include "capture/hsa/packets.h"

#include <string.h>

#include "capture/hsa/agents.h"
#include "capture/hsa/argument_memory.h"
#include "capture/hsa/kernel_objects.h"
#include "format/records.h"

namespace lockstep::capture::hsa {

PacketSettings g_packet_settings;
Runtime g_runtime;

namespace {

// A batch as the runtime hands it over. Some hand over a pointer into the ring that runs past its end.
class Batch {
 public:
  Batch(const TracedQueue& queue, const void* packets, uint64_t count)
      : first_(static_cast<const Packet*>(packets)), base_(queue.ring), in_first_(count) {
    const Packet* end = queue.ring + queue.size;
    if (first_ < queue.ring || first_ >= end || count <= static_cast<uint64_t>(end - first_)) return;
    in_first_ = static_cast<uint64_t>(end - first_);
  }
  const Packet& operator[](uint64_t i) const { return i < in_first_ ? first_[i] : base_[i - in_first_]; }
  bool is_wrapped(uint64_t count) const { return in_first_ < count; }

 private:
  const Packet* first_;
  const Packet* base_;
  uint64_t in_first_;
};

uint64_t first_word(TracedQueue& queue, uint64_t arguments) {
  // HSA demands arguments at multiples of 16 bytes: another value is not followed.
  constexpr uint64_t kAlignment = 16;
  uint64_t word;
  if (arguments % kAlignment != 0 || !can_read(arguments, sizeof word, &queue.argument_hint)) return 0;
  memcpy(&word, reinterpret_cast<const void*>(arguments), sizeof word);
  return word;
}

format::DispatchRecord* fill(TracedQueue& queue, ThreadLog* log, const Packet& packet, KernelObject kernel) {
  auto* record = log->reserve<format::DispatchRecord>();
  if (record == nullptr) {
    queue.counters.add(kCount_no_room);
    return nullptr;
  }
  if (kernel.number != 0)
    use_kernel(kernel.number);
  else
    queue.counters.add(kCount_unresolved);
  record->head.start = read_ticks();
  // The first argument of RCCL's kernels is the communicator on the device; no more is read.
  record->arguments =
      kernel.rccl == Rccl::kWithComm && g_packet_settings.reads_arguments.load(std::memory_order_relaxed)
          ? first_word(queue, packet.arguments)
          : 0;
  record->symbol = kernel.number;
  record->sequence = ++queue.sequence;
  record->queue = queue.number;
  record->agent = queue.agent;
  memcpy(record->grid, packet.grid, sizeof record->grid);
  memcpy(record->group, packet.group, sizeof record->group);
  record->untimed = format::Untimed::kNone;
  record->reserved0 = 0;
  record->private_bytes = packet.private_bytes;
  record->group_bytes = packet.group_bytes;
  return record;
}

// That it will have no times ends its record.
void publish_untimed(ThreadLog* log, format::DispatchRecord* record, uint8_t flags, format::Untimed why) {
  record->untimed = why;
  log->publish(record, format::Kind::kDispatch, flags | format::kFlagUntimed | format::kFlagStopped, 0, 1);
}

bool has_free_signal(TracedQueue& queue, ThreadLog* log) {
  const auto is_free = [&] {
    return queue.head_seen - queue.tail.load(std::memory_order_acquire) < queue.capacity;
  };
  if (__builtin_expect(is_free(), 1)) return true;
  // Some are collected here instead of waiting for our thread; few, as a launch waits for it.
  constexpr uint64_t kAtOnce = 64;
  if (queue.capacity == 0) return false;
  // None of ours where another thread is at it: that one has perhaps freed some.
  collect(queue, log, kAtOnce);
  return is_free();
}

// Packets that may be in a queue. At most: what lies behind the newest kernel that is known to have ended may
// have ended, too.
uint64_t depth(const TracedQueue& queue, uint64_t before) {
  return queue.given + before + 1 - queue.finished.load(std::memory_order_acquire);
}

// Where a queue must not overflow, one that was made wider has room for a barrier behind each kernel, as the
// program asked for a quarter of it and there are no more signals than that. In another, a barrier is added
// to each kernel while less than an eighth is full, then only now and then: so they take an eighth at most,
// whatever the program puts behind. Without those now and then nothing would tell that the queue has emptied.
// None is added to one that may be nearly full.
bool has_room_for_barrier(TracedQueue& queue, ThreadLog* log, uint64_t before) {
  const auto has_room = [&] {
    const uint64_t newest = queue.pending[(queue.head_seen - 1) & queue.mask].packet,
                   behind = queue.given + before + 1 - newest, packets = depth(queue, before);
    return packets < queue.barriers_below || (packets < queue.size / 4 * 3 && behind >= queue.size / 16);
  };
  if (!g_runtime.must_not_overflow || has_room()) return true;
  collect(queue, log, UINT64_MAX);
  return has_room();
}

// Whoever counts open kernels looks at a place that was collected meanwhile and is given again.
void keep_pending(Pending& pending, uint64_t dispatch, uint64_t packet) {
  __atomic_store_n(&pending.dispatch, dispatch, __ATOMIC_RELAXED);
  pending.packet = packet;
}

// How far such a queue has come is known by the packets that are timed. Where none has been for long, one
// that bears no signal is given ours for that alone.
void mark_depth(TracedQueue& queue, ThreadLog* log, Packet* staged, uint64_t before) {
  if (!g_runtime.must_not_overflow || depth(queue, before) < queue.size / 16 || queue.is_observed) return;
  if (queue.tail.load(std::memory_order_acquire) != queue.head_seen) collect(queue, log, UINT64_MAX);
  const bool has_one = queue.tail.load(std::memory_order_acquire) != queue.head_seen;
  if (has_one || queue.capacity == 0 || staged->completion.handle != 0) return;
  const uint64_t at = queue.head_seen & queue.mask;
  keep_pending(queue.pending[at], 0, queue.given + before + 1);
  staged->completion = queue.signals[at];
  queue.head.store(++queue.head_seen, std::memory_order_release);
}

// A copy of the packet is in `staged`. How many packets it has become.
uint64_t inject(TracedQueue& queue, ThreadLog* log, Packet* staged, uint64_t before) {
  const KernelObject kernel = find_kernel(staged->kernel_object);
  if (kernel.rccl == Rccl::kNone &&
      g_packet_settings.mode.load(std::memory_order_relaxed) == format::Mode::kLite) {
    queue.counters.add(kCount_other_mode);
    mark_depth(queue, log, staged, before);
    return 1;
  }
  const Signal theirs = staged->completion;
  const bool is_signalled = theirs.handle != 0;
  const uint8_t flags = is_signalled ? format::kFlagSignalled : 0;
  const bool can_time = !queue.is_observed && has_free_signal(queue, log) &&
                        (!is_signalled || has_room_for_barrier(queue, log, before));
  format::DispatchRecord* record = fill(queue, log, *staged, kernel);
  if (record == nullptr) return 1;
  if (!can_time) {
    queue.counters.add(queue.is_observed ? kCount_observed : kCount_no_signal);
    publish_untimed(log, record, flags,
                    queue.is_observed ? format::Untimed::kObserved : format::Untimed::kNoSignal);
    return 1;
  }
  const uint64_t at = queue.head_seen & queue.mask;
  keep_pending(queue.pending[at], log->publish(record, format::Kind::kDispatch, flags, 0),
               queue.given + before + 1);
  staged->completion = queue.signals[at];
  queue.head.store(++queue.head_seen, std::memory_order_release);
  queue.counters.add(kCount_injected);
  if (!is_signalled) return 1;
  BarrierPacket barrier{};
  barrier.header = kBarrierHeader;
  barrier.completion = theirs;
  memcpy(static_cast<void*>(staged + 1), &barrier, sizeof barrier);
  queue.counters.add(kCount_barriers);
  return 2;
}

}  // namespace

void on_packets(const void* packets, uint64_t count, uint64_t, void* data, Writer writer) {
  TracedQueue& queue = *static_cast<TracedQueue*>(data);
  queue.counters.add(kCount_calls);
  queue.counters.add(kCount_packets, count);
  const bool is_off = g_packet_settings.mode.load(std::memory_order_relaxed) == format::Mode::kOff;
  // A batch that is larger than the queue would not fit into the staging: it passes as it is, and is counted.
  ThreadLog* log = is_off || count > queue.size ? nullptr : ThreadLog::get();
  const Batch batch(queue, packets, count);
  if (batch.is_wrapped(count)) queue.counters.add(kCount_wrapped);
  if (log == nullptr) queue.counters.add(kCount_shutdown, count);
  if (log == nullptr && (count > queue.size || !batch.is_wrapped(count))) {
    queue.given += count;
    return writer(packets, count);
  }
  uint64_t staged = 0;
  for (uint64_t i = 0; i < count; ++i) {
    Packet* packet = &queue.staging[staged];
    *packet = batch[i];
    if (log == nullptr) {
      ++staged;
    } else if (type_of(packet->header) == kDispatch) {
      staged += inject(queue, log, packet, staged);
    } else {
      queue.counters.add(kCount_not_kernel);
      const uint8_t type = type_of(packet->header);
      if (type == kBarrierAnd || type == kBarrierOr) mark_depth(queue, log, packet, staged);
      ++staged;
    }
  }
  queue.given += staged;
  writer(queue.staging, staged);
}

namespace {

void record_times(TracedQueue& queue, ThreadLog* log, uint64_t dispatch, uint64_t start, uint64_t stop) {
  // Both are cleared after each use, so 0 is a stamp that the GPU did not write.
  const auto problem = start == 0 || stop == 0 ? format::TimesProblem::kNotStamped
                       : stop <= start         ? format::TimesProblem::kDisordered
                                               : format::TimesProblem::kNone;
  if (problem == format::TimesProblem::kNone)
    gpu_agent(queue.agent).last_stop.store(stop, std::memory_order_relaxed);
  auto* record = log == nullptr ? nullptr : log->reserve<format::GpuTimesRecord>();
  if (record == nullptr) return queue.counters.add(kCount_unwritten);
  record->head.start = read_ticks();
  record->target = dispatch;
  record->gpu_start = start;
  record->gpu_stop = stop;
  record->clock = format::TimesClock::kAgent;
  record->problem = problem;
  record->reserved0 = 0;
  log->publish(record, format::Kind::kGpuTimes, 0, 0);
  ThreadLog::note_times(dispatch);
  queue.counters.add(problem == format::TimesProblem::kNone         ? kCount_recorded
                     : problem == format::TimesProblem::kNotStamped ? kCount_not_stamped
                                                                    : kCount_disordered);
}

}  // namespace

uint64_t collect(TracedQueue& queue, ThreadLog* log, uint64_t most) {
  if (queue.is_collecting.exchange(true, std::memory_order_acquire)) return 0;
  uint64_t tail = queue.tail.load(std::memory_order_relaxed);
  const uint64_t head = queue.head.load(std::memory_order_acquire), begin = tail;
  for (; tail != head && tail - begin < most; ++tail) {
    const Signal signal = queue.signals[tail & queue.mask];
    // In the order of the launches: what ended before an older kernel waits for that one.
    if (g_runtime.signal_load(signal) > 0) break;
    SignalMemory* memory = memory_of(signal);
    const Pending& pending = queue.pending[tail & queue.mask];
    if (pending.dispatch != 0) record_times(queue, log, pending.dispatch, memory->start, memory->stop);
    queue.finished.store(pending.packet, std::memory_order_release);
    memory->start = memory->stop = 0;
    g_runtime.signal_store(signal, 1);
    // Only now may the launching thread use this signal again: it stands at 1, without stamps. At once, as
    // that thread may be out of signals while many are collected.
    queue.tail.store(tail + 1, std::memory_order_release);
  }
  queue.is_collecting.store(false, std::memory_order_release);
  return tail - begin;
}

}  // namespace lockstep::capture::hsa
