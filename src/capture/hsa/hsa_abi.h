// SPDX-License-Identifier: Apache-2.0
// What of AMD's runtime (HSA) is used, in our own declarations: the tables that it hands to a tools library,
// of ROCm 4.5 to 10, and the objects behind its handles. A table begins with its version, whose `minor` is
// the table's size in the runtime that runs: a slot is there if it ends within that. ROCm 5.6 put two slots
// before those of intercept queues.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::capture::hsa {

using Status = uint32_t;
inline constexpr Status kSuccess = 0, kErrorOutOfResources = 0x1008;

// Handles of the runtime. That of a signal is the address of a SignalMemory; the others are opaque.
struct Agent {
  uint64_t handle;
};
struct Signal {
  uint64_t handle;
};
struct Executable {
  uint64_t handle;
};
struct Symbol {
  uint64_t handle;
};
struct Pool {  // of memory
  uint64_t handle;
};

struct TableVersion {
  uint32_t major, minor, step, reserved;
};
// What OnLoad is given. Later releases have more tables behind these two.
struct RootTable {
  TableVersion version;
  void* core;
  void* ext;
};
static_assert(sizeof(TableVersion) == 16 && offsetof(RootTable, core) == 16 &&
              offsetof(RootTable, ext) == 24);
inline constexpr uint32_t kOldestRoot = 1, kNewestRoot = 3, kOldestCore = 1, kNewestCore = 2, kOldestExt = 1,
                          kNewestExt = 2;
// From this size on, two slots at 144 have moved those behind them.
inline constexpr uint32_t kExtWithEngines = 440;

namespace core_slot {
inline constexpr size_t kInit = 16, kSystemGetInfo = 32, kIterateAgents = 56, kAgentGetInfo = 64,
                        kQueueCreate = 72, kQueueDestroy = 88, kMemoryFree = 288, kSignalDestroy = 320,
                        kSignalLoadRelaxed = 328, kSignalLoadAcquire = 336, kSignalStoreRelaxed = 344,
                        kSignalSubtractRelease = 552, kExecutableDestroy = 688, kExecutableFreeze = 704,
                        kSymbolGetInfo = 760, kIterateSymbols = 768, kSilentStore = 832;
}
namespace ext_slot {
inline constexpr size_t kSetProfilerEnabled = 32, kAsyncCopyEnable = 40, kGetDispatchTime = 48,
                        kGetCopyTime = 56, kConvertTick = 64, kAsyncHandler = 72, kIteratePools = 112,
                        kPoolAllocate = 120, kPoolFree = 128, kMemoryAsyncCopy = 136, kCopyOnEngine = 144,
                        kSetMask = 96;
inline constexpr size_t kOldSignalCreate = 264, kOldInterceptCreate = 296, kOldInterceptRegister = 304;
inline constexpr size_t kNewSignalCreate = 280, kNewInterceptCreate = 312, kNewInterceptRegister = 320,
                        kNewSetPriority = 328;
// Of 2026. Trees of that year hold different functions at 704, so these two are proven before they are used
// (runtime.h).
inline constexpr size_t kCountedAcquire = 624, kCreateQueues = 704;
}  // namespace ext_slot

// As the program sees its queue. `base`: the ring of packets, a power of two of them.
struct Queue {
  uint32_t type, features;
  void* base;
  Signal doorbell;
  uint32_t size;  // packets
  uint32_t reserved;
  uint64_t id;
};
static_assert(sizeof(Queue) == 40 && offsetof(Queue, base) == 8 && offsetof(Queue, size) == 24 &&
              offsetof(Queue, id) == 32);

struct Packet {  // of a kernel
  uint16_t header, setup;
  uint16_t group[3];
  uint16_t reserved0;
  uint32_t grid[3];
  uint32_t private_bytes, group_bytes;
  uint64_t kernel_object;
  uint64_t arguments;  // address
  uint64_t reserved2;
  Signal completion;
};
static_assert(sizeof(Packet) == 64 && offsetof(Packet, group) == 4 && offsetof(Packet, grid) == 12 &&
              offsetof(Packet, private_bytes) == 24 && offsetof(Packet, kernel_object) == 32 &&
              offsetof(Packet, arguments) == 40 && offsetof(Packet, completion) == 56);
struct BarrierPacket {
  uint16_t header, reserved0;
  uint32_t reserved1;
  Signal dependencies[5];
  uint64_t reserved2;
  Signal completion;
};
static_assert(sizeof(BarrierPacket) == 64 && offsetof(BarrierPacket, dependencies) == 8 &&
              offsetof(BarrierPacket, completion) == 56);
enum PacketType : uint8_t {
  kVendor = 0,
  kInvalid = 1,
  kDispatch = 2,
  kBarrierAnd = 3,
  kAgentDispatch = 4,
  kBarrierOr = 5
};
constexpr uint8_t type_of(uint16_t header) { return static_cast<uint8_t>(header & 0xff); }
// In order behind all before it, and visible to the host as they are.
inline constexpr uint16_t kBarrierHeader = kBarrierAnd | 1 << 8 | 2 << 9 | 2 << 11;

// What a signal's handle points to.
struct SignalMemory {
  int64_t kind;
  int64_t value;
  uint64_t mailbox;
  uint32_t event, reserved;
  uint64_t start, stop;  // ticks of the agent
};
static_assert(offsetof(SignalMemory, value) == 8 && offsetof(SignalMemory, start) == 32 &&
              offsetof(SignalMemory, stop) == 40);
inline SignalMemory* memory_of(Signal signal) { return reinterpret_cast<SignalMemory*>(signal.handle); }

// Of a copy, in ticks of HSA's system clock.
struct Times {
  uint64_t start, stop;
};

namespace agent_info {
inline constexpr uint32_t kName = 0, kNode = 16, kDevice = 17, kDriverNode = 0xA004, kBdf = 0xA006,
                          kProduct = 0xA009, kDomain = 0xA00F, kUuid = 0xA011, kTickHz = 0xA016;
inline constexpr uint32_t kDeviceGpu = 1;
}  // namespace agent_info
namespace system_info {
inline constexpr uint32_t kTimestamp = 2, kTimestampHz = 3;
}
namespace symbol_info {
inline constexpr uint32_t kType = 0, kNameLength = 1, kName = 2, kKernelObject = 22;
inline constexpr uint32_t kKernel = 1;
}  // namespace symbol_info
// Of signal_create: for GPUs alone, so no interrupt tells the host; ours are looked at.
inline constexpr uint64_t kSignalGpuOnly = 1;
inline constexpr uint32_t kConditionLess = 2;  // hsa_signal_condition_t: EQ 0, NE 1, LT 2, GTE 3

// Functions of the tables, by the names that Runtime gives them. Each may be called from any thread.
using ErrorCallback = void (*)(Status, Queue*, void*);
// Of an intercept queue: the runtime calls the handler under a lock of the queue, and the handler the writer.
using Writer = void (*)(const void* packets, uint64_t count);
using PacketHandler = void (*)(const void* packets, uint64_t count, uint64_t first, void* data,
                               Writer writer);

using SystemGetInfo = Status (*)(uint32_t, void*);
using IterateAgents = Status (*)(Status (*)(Agent, void*), void*);
using AgentGetInfo = Status (*)(Agent, uint32_t, void*);
using QueueCreate = Status (*)(Agent, uint32_t, uint32_t, ErrorCallback, void*, uint32_t, uint32_t, Queue**);
using QueueDestroy = Status (*)(Queue*);
using InterceptRegister = Status (*)(Queue*, PacketHandler, void*);
using CountedAcquire = Status (*)(Agent, uint32_t, uint32_t, ErrorCallback, void*, uint64_t, Queue**);
using SetPriority = Status (*)(Queue*, uint32_t);
using SetMask = Status (*)(const Queue*, uint32_t, const uint32_t*);

// A queue that the program wants, of version 1: HIP makes its queues so from ROCm 10 on.
struct QueueDescriptor {
  uint16_t version;
  uint16_t flags;  // 0: the ring lies in the host's memory
  uint8_t engine;  // 0: for kernels
  uint8_t reserved0[3];
  uint32_t bytes;  // of the ring
  uint32_t priority;
  ErrorCallback callback;
  void* data;
  Queue* queue;  // the runtime's answer, nullptr: it could not be made
  // Of a queue for kernels:
  const uint32_t* mask;  // compute units, a bit each; nullptr all
  uint32_t type, private_bytes, mask_bits, reserved1[3];
  uint32_t traffic_class;
  uint8_t reserved2[20];
};
static_assert(sizeof(QueueDescriptor) == 96 && offsetof(QueueDescriptor, engine) == 4 &&
              offsetof(QueueDescriptor, bytes) == 8 && offsetof(QueueDescriptor, priority) == 12 &&
              offsetof(QueueDescriptor, callback) == 16 && offsetof(QueueDescriptor, queue) == 32 &&
              offsetof(QueueDescriptor, mask) == 40 && offsetof(QueueDescriptor, type) == 48 &&
              offsetof(QueueDescriptor, private_bytes) == 52 && offsetof(QueueDescriptor, mask_bits) == 56 &&
              offsetof(QueueDescriptor, traffic_class) == 72);
inline constexpr uint16_t kDescriptorVersion = 1;
inline constexpr uint32_t kNormalPriority = 1, kHighestPriority = 2, kSingleProducer = 1, kCooperative = 2;
// Each by its descriptor: a queue that cannot be made leaves the others; the first error is returned.
using CreateQueues = Status (*)(Agent, QueueDescriptor*, uint32_t count);
using SignalCreate = Status (*)(int64_t, uint32_t, const Agent*, uint64_t, Signal*);
using SignalDestroy = Status (*)(Signal);
using SignalLoad = int64_t (*)(Signal);
using SignalStore = void (*)(Signal, int64_t);
using ExecutableFreeze = Status (*)(Executable, const char*);
using ExecutableDestroy = Status (*)(Executable);
using IterateSymbols = Status (*)(Executable, Status (*)(Executable, Symbol, void*), void*);
using SymbolGetInfo = Status (*)(Symbol, uint32_t, void*);
using SetProfilerEnabled = Status (*)(Queue*, int);
using ConvertTick = Status (*)(Agent, uint64_t, uint64_t*);
using AsyncCopyEnable = Status (*)(bool);
using GetTimes = Status (*)(Agent, Signal, Times*);
using GetCopyTime = Status (*)(Signal, Times*);
using SignalHandler = bool (*)(int64_t, void*);
using AsyncHandler = Status (*)(Signal, uint32_t, int64_t, SignalHandler, void*);
using IteratePools = Status (*)(Agent, Status (*)(Pool, void*), void*);
using PoolAllocate = Status (*)(Pool, size_t, uint32_t, void**);
using MemoryFree = Status (*)(void*);
using MemoryAsyncCopy = Status (*)(void*, Agent, const void*, Agent, size_t, uint32_t, const Signal*, Signal);
using CopyOnEngine = Status (*)(void*, Agent, const void*, Agent, size_t, uint32_t, const Signal*, Signal,
                                uint32_t, bool);

}  // namespace lockstep::capture::hsa
