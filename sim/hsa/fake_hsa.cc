// SPDX-License-Identifier: Apache-2.0
#include "sim/hsa/fake_hsa.h"

#include <dlfcn.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "sim/hsa/fake_agents.h"
#include "sim/hsa/fake_memory.h"

namespace lockstep::sim {
namespace {

using hsa::Packet;
using hsa::Signal;
using hsa::Status;

constexpr uint64_t kEngineStart = 64, kEngineStop = 96;
constexpr Status kInvalidArgument = 0x1001, kInvalidQueue = 0x1007;

struct alignas(128) SharedSignal {
  hsa::SignalMemory memory;
  uint64_t rest[8];
  bool is_tools;
};
std::atomic_ref<int64_t> value_of(Signal signal) { return std::atomic_ref(hsa::memory_of(signal)->value); }

struct FakeQueue {
  hsa::Queue queue{};  // first: what programs hold
  std::unique_ptr<Packet[]> ring;
  uint64_t written = 0;
  bool is_intercept = false, is_profiled = false;
  uint32_t priority = hsa::kNormalPriority, mask_bits = 0;
  std::vector<FakeHsa::Handler> handlers;
  std::mutex doorbell;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Packet> lower;
  bool is_ending = false, is_busy = false;
  std::thread processor;
};

struct State {
  FakeHsaOptions options;
  std::vector<char> core, ext;
  hsa::RootTable root{};
  std::vector<void*> tools;
  std::mutex mutex;
  std::map<uint64_t, std::vector<FakeSymbol>> executables;
  std::set<FakeQueue*> queues;
  FakeQueue* next_queue = nullptr;  // where the next one is made
  std::vector<std::thread> threads;
  std::atomic<uint64_t> next_handle{100};
  std::atomic<uint64_t> live_signals{0}, kernels{0}, barriers{0}, most_in_callback{0}, callbacks{0},
      overflows{0};
  std::atomic<bool> is_idle{false};
};
State* g_state = nullptr;

Status signal_create(int64_t value, uint32_t, const hsa::Agent*, uint64_t, Signal* signal) {
  const int64_t most = g_state->options.most_signals;
  if (most >= 0 && g_state->live_signals >= static_cast<uint64_t>(most)) return hsa::kErrorOutOfResources;
  auto* made = new SharedSignal{};
  made->memory.kind = 1;
  made->memory.value = value;
  made->is_tools = true;
  ++g_state->live_signals;
  signal->handle = reinterpret_cast<uint64_t>(made);
  return hsa::kSuccess;
}
Status signal_destroy(Signal signal) {
  auto* gone = reinterpret_cast<SharedSignal*>(signal.handle);
  g_state->live_signals -= gone->is_tools;
  delete gone;
  return hsa::kSuccess;
}
int64_t signal_load(Signal signal) { return value_of(signal).load(std::memory_order_acquire); }
void signal_store(Signal signal, int64_t value) { value_of(signal).store(value, std::memory_order_release); }
void signal_subtract(Signal signal, int64_t value) {
  value_of(signal).fetch_sub(value, std::memory_order_acq_rel);
}

template <class Ended>
void wait_until(Ended&& ended) {
  while (!ended()) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// ---- the GPU

void complete(FakeQueue& queue, Signal signal, uint64_t start, bool is_kernel) {
  if (signal.handle == 0) return;
  hsa::SignalMemory* memory = hsa::memory_of(signal);
  if (queue.is_profiled && (!is_kernel || g_state->options.has_stamps)) {
    memory->start = start;
    memory->stop = g_state->options.goes_back && is_kernel ? start - 1 : std::max(now_ticks(), start + 1);
  }
  signal_subtract(signal, 1);
}

void execute(FakeQueue& queue, const Packet& packet) {
  const uint64_t start = now_ticks();
  if (hsa::type_of(packet.header) == hsa::kDispatch) {
    const auto ended = [&] { return queue.is_ending || now_ticks() - start >= packet.reserved2 / 10; };
    if (packet.reserved2 == kNever) {
      wait_until([&] {
        std::lock_guard lock(queue.mutex);
        return queue.is_ending;
      });
      return;
    }
    if (packet.reserved2 > 0) wait_until(ended);
    ++g_state->kernels;
    complete(queue, packet.completion, start, true);
  } else {
    hsa::BarrierPacket barrier;
    std::memcpy(&barrier, &packet, sizeof barrier);
    for (const Signal dependency : barrier.dependencies) {
      if (dependency.handle != 0) wait_until([&] { return signal_load(dependency) <= 0; });
    }
    ++g_state->barriers;
    complete(queue, packet.completion, start, false);
  }
}

void process(FakeQueue* queue) {
  std::unique_lock lock(queue->mutex);
  for (;;) {
    queue->is_busy = false;
    queue->changed.notify_all();
    queue->changed.wait(lock,
                        [&] { return queue->is_ending || (!queue->lower.empty() && !g_state->is_idle); });
    if (queue->is_ending) return;
    const Packet packet = queue->lower.front();
    queue->is_busy = true;
    lock.unlock();
    execute(*queue, packet);
    lock.lock();
    if (!queue->lower.empty()) queue->lower.pop_front();
  }
}

// What the queue of the hardware has no room for waits; a tool that makes several packets of one must not let
// it come to that before ROCm 6.
void give(FakeQueue& queue, const Packet* packets, uint64_t count) {
  std::unique_lock lock(queue.mutex);
  for (uint64_t i = 0; i < count; ++i) {
    if (queue.lower.size() >= queue.queue.size) {
      g_state->overflows += count > 1;
      queue.changed.wait(lock, [&] { return queue.is_ending || queue.lower.size() < queue.queue.size; });
    }
    queue.lower.push_back(packets[i]);
    queue.changed.notify_all();
  }
}

// ---- intercept queues

thread_local FakeQueue* t_queue = nullptr;
thread_local size_t t_level = 0;

void write_lower(const void* packets, uint64_t count) {
  FakeQueue& queue = *t_queue;
  if (t_level == 0) return give(queue, static_cast<const Packet*>(packets), count);
  --t_level;
  queue.handlers[t_level].call(packets, count, queue.written, queue.handlers[t_level].data, write_lower);
  ++t_level;
}

void deliver(FakeQueue& queue, const Packet* packets, uint64_t count) {
  ++g_state->callbacks;
  g_state->most_in_callback = std::max(g_state->most_in_callback.load(), count);
  t_queue = &queue;
  t_level = queue.handlers.size();
  write_lower(packets, count);
}

void doorbell(FakeQueue& queue, std::span<const Packet> packets) {
  std::lock_guard ringing(queue.doorbell);
  const uint64_t size = queue.queue.size;
  if (!queue.is_intercept || queue.handlers.empty()) return give(queue, packets.data(), packets.size());
  if (!g_state->options.are_batches) {
    for (const Packet& packet : packets) {
      Packet* at = &queue.ring[queue.written++ % size];
      *at = packet;
      deliver(queue, at, 1);
    }
    return;
  }
  while (!packets.empty()) {
    const uint64_t count = std::min<uint64_t>(packets.size(), size), first = queue.written % size;
    for (uint64_t i = 0; i < count; ++i) queue.ring[(first + i) % size] = packets[i];
    queue.written += count;
    const std::vector<Packet> staged(packets.begin(), packets.begin() + static_cast<ptrdiff_t>(count));
    deliver(queue, g_state->options.is_wrapped_linear ? &queue.ring[first] : staged.data(), count);
    packets = packets.subspan(count);
  }
}

// ---- functions of the tables

Status make(bool is_intercept, uint32_t size, hsa::Queue** out) {
  auto* made = g_state->next_queue == nullptr ? new FakeQueue : new (g_state->next_queue) FakeQueue;
  g_state->next_queue = nullptr;
  made->is_intercept = is_intercept;
  // What lies behind the ring is no packet.
  made->ring = std::make_unique<Packet[]>(2 * size);
  std::memset(static_cast<void*>(made->ring.get() + size), 0xee, size * sizeof(Packet));
  made->queue.base = made->ring.get();
  made->queue.size = size;
  made->queue.id = g_state->next_handle++;
  made->processor = std::thread(process, made);
  std::lock_guard lock(g_state->mutex);
  g_state->queues.insert(made);
  *out = &made->queue;
  return hsa::kSuccess;
}

Status queue_create(hsa::Agent, uint32_t size, uint32_t, hsa::ErrorCallback, void*, uint32_t, uint32_t,
                    hsa::Queue** out) {
  return make(false, size, out);
}
Status intercept_create(hsa::Agent, uint32_t size, uint32_t, hsa::ErrorCallback, void*,
                        uint32_t private_bytes, uint32_t, hsa::Queue** out) {
  if (g_state->options.intercept_status != 0) return g_state->options.intercept_status;
  if (g_state->options.rejects_unlimited && private_bytes == UINT32_MAX) return 0x1001;
  return make(true, size, out);
}
Status intercept_register(hsa::Queue* queue, hsa::PacketHandler handler, void* data) {
  auto* of = reinterpret_cast<FakeQueue*>(queue);
  if (!of->is_intercept) return kInvalidQueue;
  std::lock_guard ringing(of->doorbell);
  of->handlers.push_back({handler, data});
  return hsa::kSuccess;
}
Status queue_destroy(hsa::Queue* queue) {
  if (g_state->options.destroy_status != 0) return g_state->options.destroy_status;
  auto* gone = reinterpret_cast<FakeQueue*>(queue);
  {
    std::lock_guard lock(gone->mutex);
    gone->is_ending = true;
    gone->changed.notify_all();
  }
  gone->processor.join();
  std::unique_lock lock(g_state->mutex);
  g_state->queues.erase(gone);
  lock.unlock();
  if (!g_state->options.on_destroyed) return delete gone, hsa::kSuccess;
  std::destroy_at(gone);
  g_state->next_queue = gone;
  g_state->options.on_destroyed();
  return hsa::kSuccess;
}
Status set_priority(hsa::Queue* queue, uint32_t priority) {
  reinterpret_cast<FakeQueue*>(queue)->priority = priority;
  return hsa::kSuccess;
}
Status set_mask(const hsa::Queue* queue, uint32_t bits, const uint32_t*) {
  const_cast<FakeQueue*>(reinterpret_cast<const FakeQueue*>(queue))->mask_bits = bits;
  return hsa::kSuccess;
}
// Refuses what ROCm 10's runtime does, as far as tests ask for it.
Status create_queues(hsa::Agent agent, hsa::QueueDescriptor* descriptors, uint32_t count) {
  if (descriptors == nullptr || count == 0 || agent.handle == 0) return kInvalidArgument;
  Status first = hsa::kSuccess;
  for (uint32_t i = 0; i < count; ++i) {
    hsa::QueueDescriptor& wanted = descriptors[i];
    wanted.queue = nullptr;
    const bool is_good = wanted.version == hsa::kDescriptorVersion && wanted.bytes % sizeof(Packet) == 0 &&
                         wanted.bytes != 0 && wanted.priority <= hsa::kHighestPriority;
    if (is_good) {
      make(false, static_cast<uint32_t>(wanted.bytes / sizeof(Packet)), &wanted.queue);
      set_priority(wanted.queue, wanted.priority);
    } else if (first == hsa::kSuccess) {
      first = kInvalidArgument;
    }
  }
  return first;
}
Status counted_acquire(hsa::Agent, uint32_t, uint32_t, hsa::ErrorCallback, void*, uint64_t,
                       hsa::Queue** out) {
  if (out == nullptr) return kInvalidArgument;
  return make(false, 64, out);
}
Status set_profiler_enabled(hsa::Queue* queue, int enabled) {
  reinterpret_cast<FakeQueue*>(queue)->is_profiled = enabled != 0;
  return hsa::kSuccess;
}
Status convert_tick(hsa::Agent, uint64_t ticks, uint64_t* ns) {
  *ns = (ticks - kTicksAtBoot) * 10;
  return hsa::kSuccess;
}

Status executable_freeze(hsa::Executable, const char*) { return hsa::kSuccess; }
Status executable_destroy(hsa::Executable executable) {
  std::lock_guard lock(g_state->mutex);
  g_state->executables.erase(executable.handle);
  return hsa::kSuccess;
}
Status iterate_symbols(hsa::Executable executable, Status (*visit)(hsa::Executable, hsa::Symbol, void*),
                       void* data) {
  for (const FakeSymbol& symbol : g_state->executables[executable.handle])
    visit(executable, {reinterpret_cast<uint64_t>(&symbol)}, data);
  return hsa::kSuccess;
}
Status symbol_get_info(hsa::Symbol handle, uint32_t what, void* value) {
  const auto& symbol = *reinterpret_cast<const FakeSymbol*>(handle.handle);
  const bool is_kernel = symbol.object != 0;
  const auto put = [&](auto answer) { std::memcpy(value, &answer, sizeof answer); };
  if (what == hsa::symbol_info::kType) put(is_kernel ? hsa::symbol_info::kKernel : 0u);
  if (what == hsa::symbol_info::kNameLength) put(static_cast<uint32_t>(symbol.name.size()));
  if (what == hsa::symbol_info::kName) std::memcpy(value, symbol.name.data(), symbol.name.size());
  if (what == hsa::symbol_info::kKernelObject) put(symbol.object);
  return hsa::kSuccess;
}

Status async_copy_enable(bool) { return hsa::kSuccess; }
Status get_copy_time(Signal signal, hsa::Times* times) {
  const auto* bytes = reinterpret_cast<const char*>(signal.handle);
  std::memcpy(&times->start, bytes + kEngineStart, sizeof times->start);
  std::memcpy(&times->stop, bytes + kEngineStop, sizeof times->stop);
  return hsa::kSuccess;
}
Status async_handler(Signal signal, uint32_t, int64_t value, hsa::SignalHandler handler, void* data) {
  std::lock_guard lock(g_state->mutex);
  g_state->threads.emplace_back([=] {
    wait_until([&] { return signal_load(signal) < value; });
    handler(signal_load(signal), data);
  });
  return hsa::kSuccess;
}
Status memory_async_copy(void* to, hsa::Agent, const void* from, hsa::Agent, size_t bytes, uint32_t,
                         const Signal*, Signal completion) {
  std::lock_guard lock(g_state->mutex);
  g_state->threads.emplace_back([=] {
    auto* signal = reinterpret_cast<char*>(completion.handle);
    const uint64_t start = now_ns();
    std::memcpy(to, from, bytes);
    const uint64_t stop = now_ns();
    std::memcpy(signal + kEngineStart, &start, sizeof start);
    std::memcpy(signal + kEngineStop, &stop, sizeof stop);
    signal_subtract(completion, 1);
  });
  return hsa::kSuccess;
}

[[noreturn]] void not_there() {
  std::fputs("fake HSA: a slot that nobody should call\n", stderr);
  std::abort();
}

template <class Function>
void put(std::vector<char>& table, size_t offset, Function function) {
  if (offset + sizeof(void*) > table.size()) return;
  void* pointer = reinterpret_cast<void*>(function);
  std::memcpy(table.data() + offset, &pointer, sizeof pointer);
}
template <class Function>
Function at(const std::vector<char>& table, size_t offset) {
  void* pointer = nullptr;
  std::memcpy(&pointer, table.data() + offset, sizeof pointer);
  return reinterpret_cast<Function>(pointer);
}

std::vector<char> table(uint32_t major, uint32_t bytes) {
  std::vector<char> made(bytes);
  for (size_t offset = sizeof(hsa::TableVersion); offset + sizeof(void*) <= bytes; offset += sizeof(void*))
    put(made, offset, not_there);
  const hsa::TableVersion version{major, bytes, 0, 0};
  std::memcpy(made.data(), &version, sizeof version);
  return made;
}

void fill_tables() {
  const FakeHsaOptions& options = g_state->options;
  std::vector<char>& core = g_state->core = table(options.core_major, options.core_minor);
  namespace c = hsa::core_slot;
  put(core, c::kSystemGetInfo, system_get_info);
  put(core, c::kIterateAgents, iterate_agents);
  put(core, c::kAgentGetInfo, agent_get_info);
  put(core, c::kQueueCreate, queue_create);
  put(core, c::kQueueDestroy, queue_destroy);
  put(core, c::kMemoryFree, memory_free);
  put(core, c::kSignalDestroy, signal_destroy);
  put(core, c::kSignalLoadRelaxed, signal_load);
  put(core, c::kSignalLoadAcquire, signal_load);
  put(core, c::kSignalStoreRelaxed, signal_store);
  put(core, c::kSignalSubtractRelease, signal_subtract);
  put(core, c::kExecutableDestroy, executable_destroy);
  put(core, c::kExecutableFreeze, executable_freeze);
  put(core, c::kSymbolGetInfo, symbol_get_info);
  put(core, c::kIterateSymbols, iterate_symbols);
  if (options.missing_core_slot != 0) put(core, options.missing_core_slot, static_cast<void*>(nullptr));
  std::vector<char>& ext = g_state->ext = table(options.ext_major, options.ext_minor);
  namespace e = hsa::ext_slot;
  const bool moved = options.ext_minor >= hsa::kExtWithEngines;
  put(ext, e::kSetProfilerEnabled, set_profiler_enabled);
  put(ext, e::kAsyncCopyEnable, async_copy_enable);
  put(ext, e::kGetCopyTime, get_copy_time);
  put(ext, e::kConvertTick, convert_tick);
  put(ext, e::kAsyncHandler, async_handler);
  put(ext, e::kIteratePools, iterate_pools);
  put(ext, e::kPoolAllocate, pool_allocate);
  put(ext, e::kPoolFree, memory_free);
  put(ext, e::kMemoryAsyncCopy, memory_async_copy);
  put(ext, moved ? e::kNewSignalCreate : e::kOldSignalCreate, signal_create);
  put(ext, moved ? e::kNewInterceptCreate : e::kOldInterceptCreate, intercept_create);
  put(ext, moved ? e::kNewInterceptRegister : e::kOldInterceptRegister, intercept_register);
  put(ext, e::kSetMask, set_mask);
  if (moved) put(ext, e::kNewSetPriority, set_priority);
  put(ext, e::kCountedAcquire, counted_acquire);
  put(ext, options.create_queues_slot, create_queues);
  g_state->root.version = {options.root_major, sizeof(hsa::RootTable) + 16, 0, 0};
  g_state->root.core = core.data();
  g_state->root.ext = ext.data();
}

using OnLoad = bool (*)(const void*, uint64_t, uint64_t, const char* const*);

}  // namespace

// What programs link to: each goes through its slot.
extern "C" {
__attribute__((visibility("default"))) Status hsa_amd_queue_create(hsa::Agent agent,
                                                                   hsa::QueueDescriptor* descriptors,
                                                                   uint32_t count) {
  return at<hsa::CreateQueues>(g_state->ext, g_state->options.create_queues_slot)(agent, descriptors, count);
}
__attribute__((visibility("default"))) Status hsa_amd_counted_queue_acquire(hsa::Agent agent, uint32_t type,
                                                                            uint32_t priority,
                                                                            hsa::ErrorCallback callback,
                                                                            void* data, uint64_t flags,
                                                                            hsa::Queue** queue) {
  return at<hsa::CountedAcquire>(g_state->ext, hsa::ext_slot::kCountedAcquire)(agent, type, priority,
                                                                               callback, data, flags, queue);
}
}

FakeHsa& FakeHsa::get() {
  static FakeHsa runtime;
  return runtime;
}

int FakeHsa::init(const FakeHsaOptions& options) {
  g_state = new State;  // one that was shut down stays: tools may still look at their signals
  g_state->options = options;
  g_state->is_idle = options.is_idle;
  set_agents(options);
  fill_tables();
  const char* named = std::getenv("HSA_TOOLS_LIB");
  std::istringstream names(named != nullptr ? named : "");
  int loaded = 0;
  for (std::string name; names >> name;) {
    void* library = dlopen(name.c_str(), RTLD_LAZY);
    auto on_load = library == nullptr ? nullptr : reinterpret_cast<OnLoad>(dlsym(library, "OnLoad"));
    if (on_load == nullptr || !on_load(&g_state->root, g_state->root.version.major, 0, nullptr)) continue;
    g_state->tools.push_back(library);
    ++loaded;
  }
  return loaded;
}

void FakeHsa::load_tool(OnLoad on_load) { on_load(&g_state->root, g_state->root.version.major, 0, nullptr); }

void FakeHsa::shut_down() {
  for (std::thread& thread : g_state->threads) thread.join();
  g_state->threads.clear();
  for (auto tool = g_state->tools.rbegin(); tool != g_state->tools.rend(); ++tool) {
    if (auto on_unload = reinterpret_cast<void (*)()>(dlsym(*tool, "OnUnload"))) on_unload();
  }
  std::set<FakeQueue*> queues = g_state->queues;
  for (FakeQueue* queue : queues) queue_destroy(&queue->queue);
}

hsa::RootTable* FakeHsa::tables() { return &g_state->root; }

hsa::Executable FakeHsa::freeze(std::vector<FakeSymbol> symbols) {
  const hsa::Executable executable{g_state->next_handle++};
  {
    std::lock_guard lock(g_state->mutex);
    g_state->executables[executable.handle] = std::move(symbols);
  }
  at<hsa::ExecutableFreeze>(g_state->core, hsa::core_slot::kExecutableFreeze)(executable, nullptr);
  return executable;
}
void FakeHsa::destroy(hsa::Executable executable) {
  at<hsa::ExecutableDestroy>(g_state->core, hsa::core_slot::kExecutableDestroy)(executable);
}

hsa::Queue* FakeHsa::make_queue(uint32_t size, uint32_t number, hsa::Status* status) {
  hsa::Queue* queue = nullptr;
  const hsa::Status made = at<hsa::QueueCreate>(g_state->core, hsa::core_slot::kQueueCreate)(
      gpu(number), size, 1, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue);
  if (status != nullptr) *status = made;
  return queue;
}
hsa::Status FakeHsa::make_queues(std::vector<hsa::QueueDescriptor>& wanted, uint32_t number) {
  return hsa_amd_queue_create(gpu(number), wanted.data(), static_cast<uint32_t>(wanted.size()));
}
hsa::Queue* FakeHsa::acquire_counted() {
  hsa::Queue* queue = nullptr;
  hsa_amd_counted_queue_acquire(gpu(), 0, hsa::kNormalPriority, nullptr, nullptr, 0, &queue);
  return queue;
}
FakeHsa::Asked FakeHsa::asked(hsa::Queue* queue) {
  const auto& of = *reinterpret_cast<const FakeQueue*>(queue);
  return {.priority = of.priority, .mask_bits = of.mask_bits, .is_intercept = of.is_intercept};
}
void FakeHsa::destroy(hsa::Queue* queue) {
  at<hsa::QueueDestroy>(g_state->core, hsa::core_slot::kQueueDestroy)(queue);
}

hsa::Signal FakeHsa::make_signal(int64_t value) {
  auto* made = new SharedSignal{};
  made->memory.kind = 1;
  made->memory.value = value;
  return {reinterpret_cast<uint64_t>(made)};
}

void FakeHsa::submit(hsa::Queue* queue, const std::vector<Packet>& packets) {
  doorbell(*reinterpret_cast<FakeQueue*>(queue), packets);
}
FakeHsa::Handler FakeHsa::handler(hsa::Queue* queue) {
  const auto& handlers = reinterpret_cast<FakeQueue*>(queue)->handlers;
  return handlers.empty() ? Handler{} : handlers.back();
}
void FakeHsa::wait(hsa::Signal signal) {
  wait_until([&] { return signal_load(signal) <= 0; });
}
void FakeHsa::wait(hsa::Queue* queue) {
  auto& of = *reinterpret_cast<FakeQueue*>(queue);
  std::unique_lock lock(of.mutex);
  of.changed.wait(lock, [&] { return of.lower.empty() && !of.is_busy; });
}

hsa::Times FakeHsa::copy_times(hsa::Signal signal) {
  hsa::Times times{};
  get_copy_time(signal, &times);
  return times;
}

void FakeHsa::go() {
  g_state->is_idle = false;
  std::lock_guard lock(g_state->mutex);
  for (FakeQueue* queue : g_state->queues) {
    std::lock_guard queue_lock(queue->mutex);
    queue->changed.notify_all();
  }
}

FakeHsaCounts FakeHsa::counts() {
  return {g_state->live_signals,     g_state->kernels,   g_state->barriers,
          g_state->most_in_callback, g_state->callbacks, g_state->overflows};
}

}  // namespace lockstep::sim
