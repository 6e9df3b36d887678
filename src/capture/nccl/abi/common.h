// SPDX-License-Identifier: Apache-2.0
// What all versions of the NCCL profiler plugin interface share; see capture/nccl/abi.h.
#pragma once
#include <cstddef>
#include <cstdint>

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi {

using NcclResult = int;  // ncclSuccess = 0

// Event type bits. A descriptor has one of them; NCCL's mask, a 32-bit word, has those that are asked for.
inline constexpr uint64_t kTypeGroup = 0x1, kTypeColl = 0x2, kTypeP2p = 0x4, kTypeProxyOp = 0x8,
                          kTypeProxyStep = 0x10, kTypeProxyCtrl = 0x20, kTypeKernelCh = 0x40,
                          kTypeNetPlugin = 0x80, kTypeGroupApi = 0x100, kTypeCollApi = 0x200,
                          kTypeP2pApi = 0x400, kTypeKernelLaunch = 0x800, kTypeCeColl = 0x1000,
                          kTypeCeSync = 0x2000, kTypeCeBatch = 0x4000, kTypeKernelPhase = 0x8000;

// The event types that each version has; index = version. A bit beyond them means nothing to that version, or
// something else (rccl.h).
inline constexpr uint32_t kKnownTypes[] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};

// Event states; one numbering for all versions (but see rccl.h).
enum State : int {
  kProxyOpSendPosted = 0,
  kProxyOpSendRemFifoWait = 1,
  kProxyOpSendTransmitted = 2,
  kProxyOpSendDone = 3,
  kProxyOpRecvPosted = 4,
  kProxyOpRecvReceived = 5,
  kProxyOpRecvTransmitted = 6,
  kProxyOpRecvDone = 7,
  kProxyStepSendGpuWait = 8,
  kProxyStepSendWait = 9,
  kProxyStepRecvWait = 10,
  kProxyStepRecvFlushWait = 11,
  kProxyStepRecvGpuWait = 12,
  kProxyCtrlIdle = 13,
  kProxyCtrlActive = 14,
  kProxyCtrlSleep = 15,
  kProxyCtrlWakeup = 16,
  kProxyCtrlAppend = 17,
  kProxyCtrlAppendEnd = 18,
  kProxyOpInProgress = 19,
  kProxyStepSendPeerWait = 20,
  kNetPluginUpdate = 21,
  kKernelChStop = 22,
  kGroupStartApiStop = 23,
  kGroupEndApiStart = 24,
  kKernelPhaseStop = 31,
};

// NCCL's logger. Level 2 = WARN, 3 = INFO; subsystem PROFILE = 0x4000. By convention `file` is the function's
// name.
using Logger = void (*)(int level, unsigned long subsystem, const char* file, int line, const char* format,
                        ...);
inline constexpr int kLogWarn = 2, kLogInfo = 3;
inline constexpr unsigned long kLogSubsystemProfile = 0x4000;

// What a plugin exports. NCCL keeps the pointer for as long as it has the library.
template <class Init, class Descriptor, class StateArgs>
struct Plugin {
  const char* name;
  Init init;
  NcclResult (*start_event)(void* context, void** handle, Descriptor* descriptor);
  NcclResult (*stop_event)(void* handle);
  NcclResult (*record_event_state)(void* handle, State state, StateArgs* args);
  NcclResult (*finalize)(void* context);
};
// `context` and `mask` are written by the plugin: the first comes back with start_event and finalize, the
// second is one word of the process, which NCCL reads again and again. The hash of a communicator is the same
// on all its members.
using InitV1 = NcclResult (*)(void** context, int* mask);
using InitV4 = NcclResult (*)(void** context, int* mask, const char* comm_name, uint64_t comm_hash, int nodes,
                              int ranks, int rank, Logger logger);
using InitV5 = NcclResult (*)(void** context, uint64_t comm_id, int* mask, const char* comm_name, int nodes,
                              int ranks, int rank, Logger logger);

// Members that did not change between versions, or since the one that they name. `pid`: of the process that
// asked for the work, with PXN not the one that does it. `peer`: rank in the communicator. `steps`:
// transfers. `chunk_size`: bytes.
struct ProxyOp {
  int32_t pid;
  uint8_t channel;
  int32_t peer;
  int32_t steps;
  int32_t chunk_size;
  int32_t is_send;
};
// The n-th transfer of its ProxyOp.
struct ProxyStep {
  int32_t step;
};
// Up to v3 the event has no GPU time.
struct KernelChV3 {
  uint8_t channel;
};
// `ptimer`: when the channel's work began on the GPU, on the GPU's own clock (format::GpuClock): ns on
// NVIDIA, ticks on AMD. Its end comes with state 22.
struct KernelCh {
  uint8_t channel;
  uint64_t ptimer;
};
// `id`: type << 16 | version of what `data` points to, which lives during the call only.
struct NetPlugin {
  int64_t id;
  void* data;
};
// The state says which member holds: sizes in bytes with 9 and 11, operations with 18, a GPU time with 22 and
// 31. With other states the bytes may be garbage, or the pointer NULL.
struct StateArgsV4 {
  union {
    struct {
      size_t trans_size;
    } proxy_step;
    struct {
      int32_t appended;
    } proxy_ctrl;
    struct {
      void* data;
    } net_plugin;
    struct {
      uint64_t ptimer;
    } kernel_ch;
  };
};

// Payloads behind NetPlugin.data, by id.
inline constexpr int64_t kNetIdIb = 0x10001, kNetIdSocket = 0x20001;
// As NCCL's plugins for InfiniBand and for sockets lay them out; copied as they are.
struct NetIb {
  uint8_t type;
  alignas(8) int32_t device;
  uint64_t wr_id;
  int32_t opcode;
  int32_t qp;
  size_t length;
};
struct NetSocket {
  uint8_t type;
  alignas(8) int32_t fd;
  int32_t op;
  size_t length;
};

// Numeric codes of v1 (and inside NCCL), with the spellings of v2 and later. Index = code.
inline constexpr const char* kFuncNames[] = {
    "Broadcast", "Reduce",  "AllGather", "ReduceScatter", "AllReduce", "SendRecv", "Send",      "Recv",
    "AlltoAll",  "Scatter", "Gather",    "AllGatherV",    "PutSignal", "Signal",   "WaitSignal"};
inline constexpr const char* kAlgoNames[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                             "NVLS_TREE", "PAT"};
inline constexpr const char* kProtoNames[] = {"LL", "LL128", "SIMPLE"};
inline constexpr const char* kDatatypeNames[] = {
    "ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",   "ncclInt64",      "ncclUint64",
    "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

// Where a field of one of a descriptor's members is.
#define LOCKSTEP_NCCL_AT(descriptor, member, field, offset) \
  static_assert(offsetof(descriptor, member) + offsetof(decltype(descriptor::member), field) == (offset))
static_assert(sizeof(StateArgsV4) == 8);
static_assert(sizeof(ProxyOp) == 24 && sizeof(KernelCh) == 16 && sizeof(NetPlugin) == 16);
static_assert(sizeof(NetIb) == 40 && sizeof(NetSocket) == 24);

}  // namespace lockstep::nccl_abi
// clang-format on
