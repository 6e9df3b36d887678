// SPDX-License-Identifier: Apache-2.0
// Keeps the queues whose packets are seen. Memory for a queue is made when it is created, since the runtime
// holds the queue's lock when packets come and nothing may be allocated then. Signals are bounded over all
// queues: a queue that gets none is recorded without times instead of taking the program's.
#include "capture/hsa/queues.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/core/locked.h"
#include "capture/core/session/session.h"
#include "capture/hsa/agents.h"

namespace lockstep::capture::hsa {
namespace {

constexpr uint32_t kLeastPackets = 4;
// Where a queue must not overflow its ring is made so many times as large as asked for: a program that keeps
// as many packets on their way as it asked room for does not reckon with ours among them.
constexpr uint32_t kWider = 4, kWidestAsked = 1 << 14;

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
TracedQueue* g_queues[kMostQueues];
uint32_t g_numbers = 0;
uint64_t g_signals = 0, g_most_signals = 0;
uint64_t g_gone[format::kMostHsaCounters];  // counts of queues that are
Counters g_process;
std::atomic<bool> g_is_way_noted, g_is_memory_noted;  // said once, however many queues there are

void* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// One mapping holds all of a queue. The staging has room for a queue full of kernels, each with a barrier
// behind.
struct Layout {
  size_t staging, signals, pending, bytes;
};
Layout layout_of(uint64_t packets, uint64_t signals) {
  Layout layout{};
  layout.staging = (sizeof(TracedQueue) + 63) / 64 * 64;
  layout.signals = layout.staging + 2 * packets * sizeof(Packet);
  layout.pending = layout.signals + signals * sizeof(Signal);
  layout.bytes = layout.pending + signals * sizeof(Pending);
  return layout;
}

// A power of two, so that places in the ring of signals are a mask; no more than packets fit into the queue,
// and at most a quarter of those left, but for some that are kept for each queue that may still come.
uint64_t signals_for(uint64_t packets) {
  constexpr uint64_t kLeast = 64, kKept = kLeast * kMostQueues;
  uint64_t most = packets < kMostSignalsOfQueue ? packets : kMostSignalsOfQueue;
  const uint64_t share = g_signals + kKept < kMostSignals ? (kMostSignals - kKept - g_signals) / 4 : 0;
  if (most > kLeast && share < most) most = share > kLeast ? share : kLeast;
  return uint64_t{1} << (63 - __builtin_clzll(most));
}

void give_back_signals(TracedQueue& queue, uint64_t kept_from) {
  for (uint64_t i = 0; i < queue.capacity; ++i) {
    // One that a kernel on its way will still write stays with the runtime.
    const uint64_t open = queue.head.load() - kept_from;
    const bool is_open = ((i - kept_from) & queue.mask) < open;
    if (!is_open) g_runtime.signal_destroy(queue.signals[i]);
  }
  g_signals -= queue.capacity;
  queue.capacity = 0;
}

// Where the runtime gives fewer, the queue has a smaller ring of them; with none its kernels have no times.
void make_signals(TracedQueue& queue, uint64_t wanted) {
  uint64_t made = 0;
  while (made < wanted &&
         g_runtime.signal_create(1, 0, nullptr, kSignalGpuOnly, &queue.signals[made]) == kSuccess)
    ++made;
  uint64_t kept = wanted;
  while (kept > made) kept /= 2;
  while (made > kept) g_runtime.signal_destroy(queue.signals[--made]);
  queue.capacity = kept;
  queue.mask = kept == 0 ? 0 : kept - 1;
  g_signals += kept;
  if (g_signals > g_most_signals) g_most_signals = g_signals;
}

uint32_t slot_of(const TracedQueue* queue) {
  uint32_t slot = 0;
  while (slot < kMostQueues && g_queues[slot] != queue) ++slot;
  return slot;
}

TracedQueue* make_queue(Queue* queue, uint32_t asked, uint32_t agent, bool is_observed) {
  // Records name a queue in 16 bits.
  if (g_numbers >= UINT16_MAX) return nullptr;
  const uint32_t slot = slot_of(nullptr);
  if (slot == kMostQueues || queue->size == 0) return nullptr;
  const bool is_wider = queue->size >= uint64_t{kWider} * asked;
  const uint64_t signals = is_observed ? 0 : signals_for(asked < queue->size ? asked : queue->size);
  const Layout layout = layout_of(queue->size, signals);
  auto* bytes = static_cast<char*>(map(layout.bytes));
  if (bytes == nullptr) return nullptr;
  auto* made = reinterpret_cast<TracedQueue*>(bytes);
  made->queue = queue;
  made->ring = static_cast<const Packet*>(queue->base);
  made->size = queue->size;
  made->number = static_cast<uint16_t>(++g_numbers);
  made->agent = static_cast<uint16_t>(agent);
  made->is_observed = is_observed;
  made->staging = reinterpret_cast<Packet*>(bytes + layout.staging);
  made->signals = reinterpret_cast<Signal*>(bytes + layout.signals);
  made->pending = reinterpret_cast<Pending*>(bytes + layout.pending);
  made->bytes = layout.bytes;
  // With one barrier a signal, those of a wider queue fill no more than what the program did not ask for.
  made->barriers_below = is_wider ? queue->size / 4 * 3 : queue->size / 8;
  make_signals(*made, signals);
  g_queues[slot] = made;
  return made;
}

// Kernels on their way.
uint64_t open_kernels(const TracedQueue& queue) {
  uint64_t open = 0;
  for (uint64_t at = queue.tail.load(); at != queue.head.load(); ++at)
    open += __atomic_load_n(&queue.pending[at & queue.mask].dispatch, __ATOMIC_RELAXED) != 0;
  return open;
}

void free_queue(uint32_t slot) {
  TracedQueue* queue = g_queues[slot];
  for (uint32_t i = 0; i < format::kMostHsaCounters; ++i)
    g_gone[i] += queue->counters.get(static_cast<Counter>(i));
  g_queues[slot] = nullptr;
  munmap(queue, queue->bytes);
}

void define(const Queue* queue, uint32_t agent, uint32_t number, format::QueueState state, Status status,
            format::QueuePath path) {
  format::GpuQueueDef def{};
  def.queue_id = queue->id;
  def.packets = queue->size;
  def.agent = static_cast<uint16_t>(agent);
  def.path = path;
  def.state = state;
  def.status = status;
  Session::get().add_definition(format::Def::kGpuQueue, number, &def.head, sizeof def);
}

// What the program asks of a queue, and by what: `descriptor`, or nullptr where it called hsa_queue_create.
struct Asked {
  Agent agent;
  uint32_t number;  // of the agent
  uint32_t size, type;
  ErrorCallback callback;
  void* data;
  uint32_t private_bytes, group_bytes;
  QueueDescriptor* descriptor;

  format::QueuePath path() const {
    return descriptor != nullptr ? format::QueuePath::kDescribed : format::QueuePath::kCreate;
  }
};

// The queue that another tool's function made: seen, if that is an intercept queue.
bool observe(Queue* queue, const Asked& asked) {
  TracedQueue* observed = make_queue(queue, queue->size, asked.number, true);
  if (observed == nullptr) return false;
  if (g_runtime.intercept_register(queue, on_packets, observed) == kSuccess) {
    define(queue, asked.number, observed->number, format::QueueState::kObserved, kSuccess, asked.path());
    count(kCount_queues);
    Session::get().add_note(
        format::kNoteHsa,
        "observe: another tool's signals are in the packets of the queues, and there can be but "
        "one: kernels are recorded without GPU times. Beside rocprofiler's SDK use LOCKSTEP_HSA=sdk");
    return true;
  }
  free_queue(slot_of(observed));
  // Nothing has named it yet, so the next queue takes the number.
  --g_numbers;
  return false;
}

// As it would be without us.
Status make_as_asked(const Asked& asked, Queue** queue) {
  if (asked.descriptor == nullptr)
    return g_runtime.queue_create(asked.agent, asked.size, asked.type, asked.callback, asked.data,
                                  asked.private_bytes, asked.group_bytes, queue);
  const Status made = g_runtime.create_queues(asked.agent, asked.descriptor, 1);
  *queue = asked.descriptor->queue;
  return made;
}

Status make_intercepted(const Asked& asked, uint32_t size, Queue** queue) {
  Status status = g_runtime.intercept_create(asked.agent, size, asked.type, asked.callback, asked.data,
                                             asked.private_bytes, asked.group_bytes, queue);
  const QueueDescriptor* wanted = asked.descriptor;
  if (status != kSuccess || wanted == nullptr) return status;
  if (wanted->priority != kNormalPriority) status = g_runtime.set_priority(*queue, wanted->priority);
  if (status == kSuccess && wanted->mask_bits != 0)
    status = g_runtime.set_mask(*queue, wanted->mask_bits, wanted->mask);
  if (status != kSuccess) g_runtime.queue_destroy(*queue);
  return status;
}

Status make_plain(const Asked& asked, Queue** queue, Status why) {
  const Status made = make_as_asked(asked, queue);
  if (made != kSuccess) return made;
  count(kCount_plain_queues);
  define(*queue, asked.number, ++g_numbers, format::QueueState::kPlain, why, asked.path());
  return made;
}

// Whatever fails here for capture, the program gets its queue: one whose packets are not seen works as any
// other, and the file says so.
Status make_seen(const Asked& asked, Queue** queue) {
  if (g_runtime.is_behind_another) {
    const Status made = make_as_asked(asked, queue);
    if (made != kSuccess || observe(*queue, asked)) return made;
    if (asked.descriptor !=
        nullptr) {  // the other tool may follow a plain queue of its own by its write index
      count(kCount_plain_queues);
      define(*queue, asked.number, ++g_numbers, format::QueueState::kPlain, kErrorOutOfResources,
             asked.path());
      return made;
    }
    // The other tool made a plain queue: an intercept queue of ours takes its place.
    g_runtime.queue_destroy(*queue);  // a plain one
  }
  Status status = kErrorOutOfResources;
  if (g_runtime.must_not_overflow && asked.size >= kLeastPackets && asked.size <= kWidestAsked)
    // Asked for wider first; a runtime that refuses the size is asked for the program's own.
    status = make_intercepted(asked, kWider * asked.size, queue);
  if (status != kSuccess && asked.size >= kLeastPackets) status = make_intercepted(asked, asked.size, queue);
  if (status != kSuccess) return make_plain(asked, queue, status);
  TracedQueue* traced = make_queue(*queue, asked.size, asked.number, false);
  if (traced == nullptr || g_runtime.intercept_register(*queue, on_packets, traced) != kSuccess) {
    count(kCount_plain_queues);
    define(*queue, asked.number, traced != nullptr ? traced->number : ++g_numbers, format::QueueState::kPlain,
           kErrorOutOfResources, asked.path());
    return kSuccess;
  }
  // Otherwise the GPU writes no stamps into signals.
  g_runtime.set_profiler_enabled(*queue, 1);
  count(kCount_queues);
  define(*queue, asked.number, traced->number, format::QueueState::kTraced, kSuccess, asked.path());
  return kSuccess;
}

bool is_zero(const void* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (static_cast<const char*>(bytes)[i] != 0) return false;
  }
  return true;
}

// An intercept queue can be all that is asked for. What is refused here, or wrong, is left to the runtime.
bool can_intercept(const QueueDescriptor& wanted) {
  const bool is_ordinary = wanted.version == kDescriptorVersion && wanted.flags == 0 && wanted.engine == 0 &&
                           wanted.traffic_class == 0 && is_zero(wanted.reserved0, sizeof wanted.reserved0) &&
                           is_zero(wanted.reserved1, sizeof wanted.reserved1) &&
                           is_zero(wanted.reserved2, sizeof wanted.reserved2);
  const bool has_size =
      wanted.bytes >= kLeastPackets * sizeof(Packet) && (wanted.bytes & (wanted.bytes - 1)) == 0;
  const bool has_priority = wanted.priority == kNormalPriority ||
                            (wanted.priority <= kHighestPriority && g_runtime.set_priority != nullptr);
  const bool has_mask = wanted.mask_bits == 0 ? wanted.mask == nullptr
                                              : wanted.mask != nullptr && wanted.mask_bits % 32 == 0 &&
                                                    g_runtime.set_mask != nullptr;
  // All cooperative queues of an agent are one.
  const bool has_type =
      wanted.type <= kSingleProducer ||
      (wanted.type == kCooperative && wanted.priority == kNormalPriority && wanted.mask_bits == 0);
  return is_ordinary && has_size && has_priority && has_mask && has_type;
}

Status make_described(Agent agent, uint32_t number, QueueDescriptor& wanted) {
  // Descriptor version 1 knows no size of group segments: the runtime's default.
  const Asked asked{.agent = agent,
                    .number = number,
                    .size = static_cast<uint32_t>(wanted.bytes / sizeof(Packet)),
                    .type = wanted.type,
                    .callback = wanted.callback,
                    .data = wanted.data,
                    .private_bytes = wanted.private_bytes,
                    .group_bytes = UINT32_MAX,
                    .descriptor = &wanted};
  wanted.queue = nullptr;
  Locked locked(&g_lock);
  if (can_intercept(wanted)) return make_seen(asked, &wanted.queue);
  const Status made = g_runtime.create_queues(agent, &wanted, 1);
  if (made != kSuccess || wanted.engine != 0) return made;
  count(kCount_other_queues);
  define(wanted.queue, number, ++g_numbers, format::QueueState::kPlain, kSuccess, asked.path());
  if (wanted.flags != 0 && !g_is_memory_noted.exchange(true))
    Session::get().add_note(format::kNoteHsa,
                            "queues lie in GPU memory and cannot be intercepted there: HIP makes them in the "
                            "host's with DEBUG_CLR_AQL_DEV_QUEUE=0");
  return made;
}

}  // namespace

void count(Counter counter) { g_process.counts[counter].fetch_add(1, std::memory_order_relaxed); }

Status on_queue_create(Agent agent, uint32_t size, uint32_t type, ErrorCallback callback, void* data,
                       uint32_t private_bytes, uint32_t group_bytes, Queue** queue) {
  const Asked asked{agent, agent_number(agent), size,        type,   callback,
                    data,  private_bytes,       group_bytes, nullptr};
  if (asked.number == kMostAgents || queue == nullptr || !Session::get().running()) {
    const Status made = make_as_asked(asked, queue);
    if (made == kSuccess && asked.number == kMostAgents) count(kCount_plain_queues);
    return made;
  }
  Locked locked(&g_lock);
  return make_seen(asked, queue);
}

// Of another version the size of a descriptor is not known, so that there is no way to the second one.
Status on_create_queues(Agent agent, QueueDescriptor* descriptors, uint32_t number_of) {
  const uint32_t number = agent_number(agent);
  const bool is_known =
      descriptors != nullptr && number_of != 0 && descriptors[0].version == kDescriptorVersion;
  if (!is_known || number == kMostAgents || !Session::get().running()) {
    const Status made = g_runtime.create_queues(agent, descriptors, number_of);
    if (made != kSuccess || !Session::get().running()) return made;
    for (uint32_t i = 0; i < number_of; ++i)
      count(number == kMostAgents ? kCount_plain_queues : kCount_other_queues);
    if (number != kMostAgents && !g_is_way_noted.exchange(true))
      Session::get().add_note(format::kNoteHsa, "queues are made in a way that this version does not know");
    return made;
  }
  Status first = kSuccess;
  for (uint32_t i = 0; i < number_of; ++i) {
    const Status made = make_described(agent, number, descriptors[i]);
    if (first == kSuccess) first = made;
  }
  return first;
}

// The lock is not held in the runtime's call, which may wait for a thread that makes a queue. So another one
// may get this address before that returns: the entry is found, and loses its address, before.
Status on_queue_destroy(Queue* queue) {
  if (!Session::get().running() && Session::get().phase() != Phase::kClosed)
    return g_runtime.queue_destroy(queue);
  TracedQueue* gone = nullptr;
  {
    Locked locked(&g_lock);
    for (TracedQueue* traced : g_queues) {
      if (traced != nullptr && queue != nullptr && traced->queue == queue) gone = traced;
    }
    if (gone != nullptr) gone->queue = nullptr;
  }
  const Status destroyed = g_runtime.queue_destroy(queue);
  if (gone == nullptr) return destroyed;
  Locked locked(&g_lock);
  if (destroyed != kSuccess) {
    gone->queue = queue;  // the runtime still calls with it
    return destroyed;
  }
  const uint32_t slot = slot_of(gone);
  if (slot == kMostQueues) return destroyed;  // dropped meanwhile
  collect(*gone, ThreadLog::get(), UINT64_MAX);
  gone->counters.add(kCount_unfinished, open_kernels(*gone));
  give_back_signals(*gone, gone->head.load());  // nothing runs there any more
  free_queue(slot);
  return destroyed;
}

Status on_counted_acquire(Agent agent, uint32_t type, uint32_t priority, ErrorCallback callback, void* data,
                          uint64_t flags, Queue** queue) {
  const Status made = g_runtime.counted_acquire(agent, type, priority, callback, data, flags, queue);
  if (made != kSuccess || !Session::get().running()) return made;
  const uint32_t number = agent_number(agent);
  Locked locked(&g_lock);
  count(kCount_other_queues);
  if (number != kMostAgents)
    define(*queue, number, ++g_numbers, format::QueueState::kPlain, kSuccess, format::QueuePath::kCounted);
  return made;
}

uint64_t collect_all(ThreadLog* log, uint64_t* open) {
  Locked locked(&g_lock);
  uint64_t collected = 0;
  *open = 0;
  for (TracedQueue* queue : g_queues) {
    if (queue == nullptr) continue;
    collected += collect(*queue, log, UINT64_MAX);
    *open += queue->head.load(std::memory_order_relaxed) - queue->tail.load(std::memory_order_relaxed);
  }
  return collected;
}

void sum_counters(uint64_t (&counts)[format::kMostHsaCounters]) {
  Locked locked(&g_lock);
  for (uint32_t i = 0; i < format::kMostHsaCounters; ++i) {
    counts[i] = g_gone[i] + g_process.get(static_cast<Counter>(i));
    for (const TracedQueue* queue : g_queues) {
      if (queue != nullptr) counts[i] += queue->counters.get(static_cast<Counter>(i));
    }
  }
  for (const TracedQueue* queue : g_queues) {
    if (queue != nullptr) counts[kCount_unfinished] += open_kernels(*queue);
  }
  counts[kCount_signals] = g_most_signals;
}

void drop_queues() {
  Locked locked(&g_lock);
  for (uint32_t slot = 0; slot < kMostQueues; ++slot) {
    TracedQueue* queue = g_queues[slot];
    if (queue == nullptr) continue;
    queue->counters.add(kCount_unfinished, open_kernels(*queue));
    give_back_signals(*queue, queue->tail.load());
    for (uint32_t i = 0; i < format::kMostHsaCounters; ++i)
      g_gone[i] += queue->counters.get(static_cast<Counter>(i));
    g_queues[slot] = nullptr;  // its memory stays: the runtime may still call with it
  }
}

}  // namespace lockstep::capture::hsa
