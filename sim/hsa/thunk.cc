// SPDX-License-Identifier: Apache-2.0
// Host B: the library between AMD's runtime and the kernel driver (libhsakmt.so.1), in software. Under it a
// distribution's own ROCr and HIP (host C) run as with GPUs. Kernels only take time, copies move nothing.
//   LOCKSTEP_SIM_GPUS how many, 1; LOCKSTEP_SIM_KERNEL_NS: of a kernel whose packet says nothing (reserved2)
// The structures are ours, of interface 1.8, each with its size asserted.
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "capture/hsa/hsa_abi.h"
#include "sim/hsa/meeting.h"

namespace {

namespace hsa = lockstep::capture::hsa;
using Status = int;
constexpr Status kSuccess = 0, kError = 1, kNotSupported = 14;

#pragma pack(push, 4)
struct NodeProperties {
  uint32_t cpu_cores, gpu_cores, memory_banks, caches, links, cpu_first, gpu_first, capability,
      waves_per_simd, lds_kb, gds_kb, wavefront, shader_banks, arrays, cus_per_array, simds_per_cu,
      scratch_slots, engine;
  uint16_t vendor, device;
  uint32_t location;
  uint64_t local_bytes;
  uint32_t gpu_mhz, cpu_mhz, render_minor;
  uint16_t model[64];
  uint8_t name[64];
  uint32_t microcode;
  uint64_t debug, hive;
  uint32_t copy_engines, link_engines;
  uint8_t queues_per_engine, cp_queues, gws, reserved0;
  uint32_t domain;
  uint64_t unique;
  uint32_t reserved1[5];
};
static_assert(sizeof(NodeProperties) == 356);
struct MemoryProperties {
  uint32_t heap;
  uint64_t bytes;
  uint32_t flags, width, mhz;
  uint64_t base;
};
static_assert(sizeof(MemoryProperties) == 32);
struct CacheProperties {
  uint32_t first, level, kib, line, lines_per_tag, ways, latency, type, siblings[256];
};
static_assert(sizeof(CacheProperties) == 1056);
struct ClockCounters {
  uint64_t gpu, cpu, system, system_hz;
};
struct QueueResource {
  uint64_t id;
  uint64_t* doorbell;
  uint64_t* write;
  uint64_t* read;
  int64_t* error;
};
static_assert(sizeof(QueueResource) == 40);
struct Event {
  uint32_t id, type;
  uint8_t data[20];
  uint64_t hardware1, mailbox;
  uint32_t hardware3;
};
static_assert(sizeof(Event) == 48 && offsetof(Event, mailbox) == 36);
struct PointerInfo {
  uint32_t type, node, flags;
  void* cpu;
  uint64_t gpu, bytes;
  uint32_t registered_count, mapped_count;
  const uint32_t *registered, *mapped;
  void* user;
};
static_assert(sizeof(PointerInfo) == 68);
struct TileConfig {
  uint32_t *tiles, *macro_tiles;
  uint32_t tile_count, macro_tile_count, address_config, banks, ranks, reserved[7];
};
#pragma pack(pop)

uint32_t gpus() {
  const char* set = std::getenv("LOCKSTEP_SIM_GPUS");
  return set != nullptr ? static_cast<uint32_t>(std::strtoul(set, nullptr, 10)) : 1;
}
uint64_t default_kernel_ns() {
  const char* set = std::getenv("LOCKSTEP_SIM_KERNEL_NS");
  return set != nullptr ? std::strtoull(set, nullptr, 10) : 0;
}
uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}
uint64_t now_ticks() { return now_ns() / 10; }  // 100 MHz

void nap(uint64_t ns) {
  const timespec pause{0, static_cast<long>(ns)};
  nanosleep(&pause, nullptr);
}

struct OwnEvent {
  Event event{};
  uint64_t mailbox = 0;
  bool is_set = false, is_manual = false;
};
// Never destroyed, as what follows: the runtime's threads and those of queues go on until the process ends.
auto& g_events_mutex = *new std::mutex;
auto& g_events_changed = *new std::condition_variable;
auto& g_events = *new std::map<uint32_t, std::unique_ptr<OwnEvent>>;
uint32_t g_next_event = 1;

void set_event(uint32_t id) {
  std::lock_guard lock(g_events_mutex);
  const auto found = g_events.find(id);
  if (found == g_events.end()) return;
  found->second->is_set = true;
  g_events_changed.notify_all();
}

// ---- queues

struct OwnQueue {
  hsa::Packet* ring;
  uint64_t packets;
  QueueResource resource;
  alignas(64) std::atomic<uint64_t> doorbell{~uint64_t{0}};
  std::atomic<bool> is_ending{false};
  std::thread processor;
};
std::mutex g_queues_mutex;
auto& g_queues = *new std::map<uint64_t, std::unique_ptr<OwnQueue>>;
uint64_t g_next_queue = 1;

constexpr size_t kWriteInQueue = 56, kPropertiesInQueue = 180;  // of amd_queue_t
constexpr uint32_t kProfiling = 1 << 3;

bool is_profiled(const OwnQueue& queue) {
  uint32_t properties;
  std::memcpy(&properties,
              reinterpret_cast<const char*>(queue.resource.write) - kWriteInQueue + kPropertiesInQueue,
              sizeof properties);
  return (properties & kProfiling) != 0;
}

void complete(const OwnQueue& queue, hsa::Signal signal, uint64_t start) {
  if (signal.handle == 0) return;
  hsa::SignalMemory* memory = hsa::memory_of(signal);
  if (is_profiled(queue)) {
    memory->start = start;
    memory->stop = std::max(now_ticks(), start + 1);
  }
  const uint64_t mailbox = memory->mailbox;
  const uint32_t event = memory->event;
  std::atomic_ref(memory->value).fetch_sub(1, std::memory_order_acq_rel);
  if (mailbox == 0) return;
  std::atomic_ref(*reinterpret_cast<uint64_t*>(mailbox)).store(event);
  set_event(event);
}

void execute(const OwnQueue& queue, const hsa::Packet& packet) {
  const uint64_t start = now_ticks();
  const uint8_t type = hsa::type_of(packet.header);
  if (type == hsa::kDispatch) {
    lockstep::sim::meet(packet.arguments, queue.is_ending);
    const uint64_t ns = packet.reserved2 != 0 ? packet.reserved2 : default_kernel_ns();
    while (ns > 0 && now_ticks() - start < ns / 10 && !queue.is_ending) nap(std::min<uint64_t>(ns, 100'000));
  } else if (type == hsa::kBarrierAnd || type == hsa::kBarrierOr) {
    hsa::BarrierPacket barrier;
    std::memcpy(&barrier, &packet, sizeof barrier);
    for (const hsa::Signal dependency : barrier.dependencies) {
      while (dependency.handle != 0 && !queue.is_ending &&
             std::atomic_ref(hsa::memory_of(dependency)->value).load(std::memory_order_acquire) > 0)
        nap(20'000);
    }
  }
  complete(queue, packet.completion, start);
}

void process(OwnQueue* queue) {
  uint64_t next = 0, idle = 0;
  while (!queue->is_ending) {
    hsa::Packet& packet = queue->ring[next % queue->packets];
    std::atomic_ref<uint16_t> header(packet.header);
    const uint64_t rung = queue->doorbell.load(std::memory_order_acquire);
    const bool is_there = rung != ~uint64_t{0} && next <= rung &&
                          hsa::type_of(header.load(std::memory_order_acquire)) != hsa::kInvalid;
    if (!is_there) {
      if (++idle > 100) nap(idle < 2000 ? 20'000 : 200'000);
      continue;
    }
    idle = 0;
    const hsa::Packet taken = packet;
    execute(*queue, taken);
    header.store(hsa::kInvalid, std::memory_order_release);
    std::atomic_ref(*queue->resource.read).store(++next, std::memory_order_release);
  }
}

// ---- memory

struct Allocation {
  uint64_t bytes = 0;
  uint32_t node = 0, flags = 0, type = 1;
  void* user = nullptr;
};
std::mutex g_memory_mutex;
std::map<uint64_t, Allocation> g_memory;
constexpr uint32_t kAllocated = 1, kRegistered = 2;
constexpr uint64_t kHuge = uint64_t{2} << 20;

std::map<uint64_t, Allocation>::iterator find_memory(const void* pointer) {
  const auto at = reinterpret_cast<uint64_t>(pointer);
  auto found = g_memory.upper_bound(at);
  if (found == g_memory.begin()) return g_memory.end();
  --found;
  return at < found->first + found->second.bytes ? found : g_memory.end();
}

}  // namespace

extern "C" {

Status hsaKmtOpenKFD() { return kSuccess; }
Status hsaKmtCloseKFD() { return kSuccess; }
Status hsaKmtGetVersion(uint32_t* version) {
  version[0] = 1;
  version[1] = 8;
  return kSuccess;
}
Status hsaKmtAcquireSystemProperties(uint32_t* nodes) {
  std::memset(nodes, 0, 16);
  nodes[0] = 1 + gpus();
  return kSuccess;
}
Status hsaKmtReleaseSystemProperties() { return kSuccess; }

Status hsaKmtGetNodeProperties(uint32_t node, NodeProperties* out) {
  if (node > gpus()) return kError;
  *out = {};
  out->caches = 2;
  const char* model = node == 0 ? "Software host" : "Lockstep software GPU";
  for (size_t i = 0; model[i] != 0; ++i) out->model[i] = static_cast<unsigned char>(model[i]);
  if (node == 0) {
    out->cpu_cores = 2;
    out->memory_banks = 1;
    std::memcpy(out->name, "cpu", 3);
    return kSuccess;
  }
  constexpr uint32_t kDoorbellOfGfx9 = 2 << 12, kGfx900 = 9 << 10;
  out->gpu_cores = 240;
  out->memory_banks = 3;
  out->gpu_first = 0x80000000 + 1024 * node;
  out->capability = kDoorbellOfGfx9;
  out->waves_per_simd = 10;
  out->lds_kb = 64;
  out->wavefront = 64;
  out->shader_banks = 4;
  out->arrays = 1;
  out->cus_per_array = 15;
  out->simds_per_cu = 4;
  out->scratch_slots = 32;
  out->engine = kGfx900;
  out->vendor = 0x1002;
  out->device = 0x6860;
  out->location = (0x10 + node) << 8;
  out->local_bytes = uint64_t{4} << 30;
  out->gpu_mhz = 1500;
  out->cpu_mhz = 3000;
  out->render_minor = 127 + node;
  std::memcpy(out->name, "gfx900", 6);
  out->cp_queues = 24;
  out->unique = 0xabcd000000000000 + node;
  return kSuccess;
}

Status hsaKmtGetNodeMemoryProperties(uint32_t node, uint32_t banks, MemoryProperties* out) {
  enum Heap : uint32_t { kSystem = 0, kFrameBuffer = 1, kLds = 4, kScratch = 5 };
  for (uint32_t i = 0; i < banks; ++i) out[i] = {};
  if (node == 0) {
    if (banks > 0) out[0] = {kSystem, uint64_t{8} << 30, 0, 64, 2400, 0};
    return kSuccess;
  }
  if (banks > 0) out[0] = {kFrameBuffer, uint64_t{4} << 30, 0, 2048, 900, 0};
  if (banks > 1) out[1] = {kLds, 64 << 10, 0, 64, 900, 0x1000000000000};
  if (banks > 2) out[2] = {kScratch, uint64_t{4} << 30, 0, 64, 900, 0x2000000000000};
  return kSuccess;
}
Status hsaKmtGetNodeCacheProperties(uint32_t, uint32_t, uint32_t count, CacheProperties* out) {
  constexpr uint32_t kDataOfAll = 1 | 4 | 8;
  for (uint32_t i = 0; i < count; ++i) {
    out[i] = {};
    out[i].level = i + 1;
    out[i].kib = 16u << (4 * i);
    out[i].line = 64;
    out[i].type = kDataOfAll;
  }
  return kSuccess;
}
Status hsaKmtGetNodeIoLinkProperties(uint32_t, uint32_t count, void* out) {
  std::memset(out, 0, count * size_t{48});
  return kSuccess;
}
Status hsaKmtGetTileConfig(uint32_t, TileConfig* out) {
  std::memset(out->tiles, 0, out->tile_count * sizeof(uint32_t));
  std::memset(out->macro_tiles, 0, out->macro_tile_count * sizeof(uint32_t));
  out->address_config = 0x24000042;
  out->banks = out->ranks = 1;
  return kSuccess;
}
Status hsaKmtGetClockCounters(uint32_t, ClockCounters* out) {
  const uint64_t now = now_ns();
  *out = {now / 10, now, now, 1'000'000'000};
  return kSuccess;
}

// -- events

Status hsaKmtCreateEvent(const uint32_t* what, bool is_manual, bool is_set, Event** out) {
  std::lock_guard lock(g_events_mutex);
  auto made = std::make_unique<OwnEvent>();
  made->event.id = g_next_event++;
  made->event.type = what[0];
  made->event.mailbox = reinterpret_cast<uint64_t>(&made->mailbox);
  made->is_set = is_set;
  made->is_manual = is_manual;
  *out = &made->event;
  g_events[made->event.id] = std::move(made);
  return kSuccess;
}
Status hsaKmtDestroyEvent(Event* event) {
  if (event == nullptr) return kError;
  std::lock_guard lock(g_events_mutex);
  g_events.erase(event->id);
  return kSuccess;
}
Status hsaKmtSetEvent(Event* event) {
  if (event == nullptr) return kError;
  set_event(event->id);
  return kSuccess;
}
Status hsaKmtWaitOnMultipleEvents(Event** events, uint32_t count, bool all, uint32_t ms) {
  constexpr Status kTimeout = 31;
  std::unique_lock lock(g_events_mutex);
  const auto is_set = [&](const Event* event) {
    const auto found = event == nullptr ? g_events.end() : g_events.find(event->id);
    return found != g_events.end() && found->second->is_set;
  };
  const auto is_over = [&] {
    uint32_t set = 0;
    for (uint32_t i = 0; i < count; ++i) set += is_set(events[i]);
    return all ? set == count : set > 0;
  };
  const auto most = std::chrono::milliseconds(std::min(ms, 100'000u));
  if (!g_events_changed.wait_for(lock, most, is_over)) return kTimeout;
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_set(events[i])) continue;
    OwnEvent& event = *g_events.at(events[i]->id);
    if (!event.is_manual) event.is_set = false;
  }
  return kSuccess;
}
Status hsaKmtWaitOnEvent(Event* event, uint32_t ms) {
  return hsaKmtWaitOnMultipleEvents(&event, 1, true, ms);
}

// -- queues

Status hsaKmtCreateQueue(uint32_t, int type, uint32_t, int, void* ring, uint64_t bytes, Event*,
                         QueueResource* out) {
  constexpr int kAql = 21;
  if (type != kAql) return kNotSupported;
  auto made = std::make_unique<OwnQueue>();
  made->ring = static_cast<hsa::Packet*>(ring);
  made->packets = bytes / sizeof(hsa::Packet);
  made->resource = *out;
  std::lock_guard lock(g_queues_mutex);
  out->id = made->resource.id = g_next_queue++;
  out->doorbell = reinterpret_cast<uint64_t*>(&made->doorbell);
  OwnQueue* queue = made.get();
  g_queues[out->id] = std::move(made);
  queue->processor = std::thread(process, queue);
  return kSuccess;
}
Status hsaKmtDestroyQueue(uint64_t id) {
  std::unique_ptr<OwnQueue> gone;
  {
    std::lock_guard lock(g_queues_mutex);
    const auto found = g_queues.find(id);
    if (found == g_queues.end()) return kError;
    gone = std::move(found->second);
    g_queues.erase(found);
  }
  gone->is_ending = true;
  gone->processor.join();
  return kSuccess;
}
Status hsaKmtUpdateQueue(uint64_t, uint32_t, int, void*, uint64_t, Event*) { return kSuccess; }
Status hsaKmtSetQueueCUMask(uint64_t, uint32_t, uint32_t*) { return kSuccess; }
Status hsaKmtAllocQueueGWS(uint64_t, uint32_t, uint32_t*) { return kNotSupported; }

// -- memory

Status hsaKmtAllocMemory(uint32_t node, uint64_t bytes, uint32_t flags, void** out) {
  const uint64_t asked = bytes + kHuge;
  void* memory = mmap(nullptr, asked, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return kError;
  const auto begin = reinterpret_cast<uint64_t>(memory), at = (begin + kHuge - 1) / kHuge * kHuge;
  if (at > begin) munmap(memory, at - begin);
  munmap(reinterpret_cast<void*>(at + bytes), begin + asked - at - bytes);
  std::lock_guard lock(g_memory_mutex);
  g_memory[at] = {bytes, node, flags, kAllocated, nullptr};
  *out = reinterpret_cast<void*>(at);
  return kSuccess;
}
Status hsaKmtFreeMemory(void* memory, uint64_t) {
  std::lock_guard lock(g_memory_mutex);
  const auto found = g_memory.find(reinterpret_cast<uint64_t>(memory));
  if (found == g_memory.end()) return kError;
  munmap(memory, found->second.bytes);
  g_memory.erase(found);
  return kSuccess;
}
Status hsaKmtRegisterMemoryWithFlags(void* memory, uint64_t bytes, uint32_t flags) {
  std::lock_guard lock(g_memory_mutex);
  if (find_memory(memory) == g_memory.end())
    g_memory[reinterpret_cast<uint64_t>(memory)] = {bytes, 0, flags, kRegistered, nullptr};
  return kSuccess;
}
Status hsaKmtDeregisterMemory(void* memory) {
  std::lock_guard lock(g_memory_mutex);
  const auto found = g_memory.find(reinterpret_cast<uint64_t>(memory));
  if (found != g_memory.end() && found->second.type == kRegistered) g_memory.erase(found);
  return kSuccess;
}
Status hsaKmtMapMemoryToGPU(void* memory, uint64_t, uint64_t* there) {
  if (there != nullptr) *there = reinterpret_cast<uint64_t>(memory);
  return kSuccess;
}
Status hsaKmtMapMemoryToGPUNodes(void* memory, uint64_t, uint64_t* there, uint32_t, uint64_t, uint32_t*) {
  if (there != nullptr) *there = reinterpret_cast<uint64_t>(memory);
  return kSuccess;
}
Status hsaKmtUnmapMemoryToGPU(void*) { return kSuccess; }
Status hsaKmtQueryPointerInfo(const void* pointer, PointerInfo* out) {
  *out = {};
  std::lock_guard lock(g_memory_mutex);
  const auto found = find_memory(pointer);
  if (found == g_memory.end()) return kSuccess;  // type 0: unknown
  const Allocation& memory = found->second;
  out->type = memory.type;
  out->node = memory.node;
  out->flags = memory.flags;
  out->cpu = reinterpret_cast<void*>(found->first);
  out->gpu = found->first;
  out->bytes = memory.bytes;
  out->registered_count = out->mapped_count = 1;
  static thread_local uint32_t node;
  node = memory.node;
  out->registered = out->mapped = &node;
  out->user = memory.user;
  return kSuccess;
}
Status hsaKmtSetMemoryUserData(const void* pointer, void* user) {
  std::lock_guard lock(g_memory_mutex);
  const auto found = find_memory(pointer);
  if (found == g_memory.end()) return kError;
  found->second.user = user;
  return kSuccess;
}
Status hsaKmtSetMemoryPolicy(uint32_t, uint32_t, uint32_t, void*, uint64_t) { return kSuccess; }
Status hsaKmtSetTrapHandler(uint32_t, void*, uint64_t, void*, uint64_t) { return kSuccess; }
Status hsaKmtRuntimeEnable(void*, bool) { return kSuccess; }
Status hsaKmtRuntimeDisable() { return kSuccess; }

Status hsaKmtRegisterGraphicsHandleToNodes(uint64_t, void*, uint64_t, uint32_t*) { return kNotSupported; }
Status hsaKmtRegisterSharedHandle(const void*, void**, uint64_t*) { return kNotSupported; }
Status hsaKmtRegisterSharedHandleToNodes(const void*, void**, uint64_t*, uint64_t, uint32_t*) {
  return kNotSupported;
}
Status hsaKmtShareMemory(void*, uint64_t, void*) { return kNotSupported; }
Status hsaKmtSVMSetAttr(void*, uint64_t, unsigned, void*) { return kNotSupported; }
Status hsaKmtSVMGetAttr(void*, uint64_t, unsigned, void*) { return kNotSupported; }
Status hsaKmtSetXNACKMode(int32_t) { return kNotSupported; }
Status hsaKmtGetXNACKMode(int32_t* enabled) {
  *enabled = 0;
  return kSuccess;
}
}
