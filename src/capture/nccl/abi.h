// SPDX-License-Identifier: Apache-2.0
// The NCCL profiler plugin interface, versions 1 to 7, written from the published layout facts; sizes and offsets are
// asserted below. A plugin exports a data object `ncclProfiler_v<N>`; NCCL takes the newest it knows, and only that one.
//
// Threads: `init` and `finalize` from any thread, also concurrently; events of one comm from several threads.
// A descriptor is valid only during `start_event`. Only `start_event` and `finalize` receive the context.
// The meaning of every field, state and sequence is in docs/nccl-events.md.
#pragma once
#include <cstddef>
#include <cstdint>

// clang-format off: one line a member struct, as the tables of the interface have it
namespace lockstep::nccl_abi {

using NcclResult = int;  // ncclSuccess = 0

// Event type bits.
inline constexpr uint64_t kTypeGroup = 0x1, kTypeColl = 0x2, kTypeP2p = 0x4, kTypeProxyOp = 0x8,
                          kTypeProxyStep = 0x10, kTypeProxyCtrl = 0x20, kTypeKernelCh = 0x40,
                          kTypeNetPlugin = 0x80, kTypeGroupApi = 0x100, kTypeCollApi = 0x200,
                          kTypeP2pApi = 0x400, kTypeKernelLaunch = 0x800, kTypeCeColl = 0x1000,
                          kTypeCeSync = 0x2000, kTypeCeBatch = 0x4000, kTypeKernelPhase = 0x8000;

// Event states; one numbering for all versions.
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

// NCCL's logger. Level 2 = WARN, 3 = INFO; subsystem PROFILE = 0x4000. By convention `file` is the function's name.
using Logger = void (*)(int level, unsigned long subsystem, const char* file, int line, const char* format,
                        ...);
inline constexpr int kLogWarn = 2, kLogInfo = 3;
inline constexpr unsigned long kLogSubsystemProfile = 0x4000;

template <class Init, class Descriptor, class StateArgs>
struct Plugin {
  const char* name;
  Init init;
  NcclResult (*start_event)(void* context, void** handle, Descriptor* descriptor);
  NcclResult (*stop_event)(void* handle);
  NcclResult (*record_event_state)(void* handle, State state, StateArgs* args);
  NcclResult (*finalize)(void* context);
};
using InitV1 = NcclResult (*)(void** context, int* mask);
using InitV4 = NcclResult (*)(void** context, int* mask, const char* comm_name, uint64_t comm_hash, int nodes,
                              int ranks, int rank, Logger logger);
using InitV5 = NcclResult (*)(void** context, uint64_t comm_id, int* mask, const char* comm_name, int nodes,
                              int ranks, int rank, Logger logger);

// Members that did not change between versions.
struct ProxyOp {
  int32_t pid;
  uint8_t channel;
  int32_t peer;
  int32_t steps;
  int32_t chunk_size;
  int32_t is_send;
};
struct ProxyStep {
  int32_t step;
};
struct KernelChV3 {
  uint8_t channel;
};
struct KernelCh {
  uint8_t channel;
  uint64_t ptimer;
};
struct NetPlugin {
  int64_t id;
  void* data;
};

namespace v1 {
struct Coll {
  const char* name;
  uint64_t comm_hash;
  uint64_t seq;
  uint8_t func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  uint8_t datatype;
  uint32_t op;
  size_t traffic_bytes;
  uint8_t max_channels;
  uint8_t warps;
  uint8_t algo;
  uint8_t proto;
  int32_t is_collnet;
  int32_t is_nvls;
};
struct P2p {
  const char* name;
  uint64_t comm_hash;
  uint8_t func;
  void* buffer;
  uint8_t datatype;
  size_t count;
  int32_t peer;
};
struct Descriptor {
  uint8_t type;
  void* parent;
  int32_t rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};
struct StateArgs {
  union {
    struct {
      size_t trans_size;
      int32_t steps;
    } proxy_op;
    struct {
      int32_t appended;
    } proxy_ctrl;
  };
};
using Plugin = nccl_abi::Plugin<InitV1, Descriptor, StateArgs>;
}  // namespace v1

namespace v2 {
struct Coll {
  const char* name;
  uint64_t comm_hash;
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  size_t traffic_bytes;
  uint8_t max_channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
};
struct P2p {
  const char* name;
  uint64_t comm_hash;
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
};
struct Descriptor {
  uint8_t type;
  void* parent;
  int32_t rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};
using StateArgs = v1::StateArgs;
using Plugin = nccl_abi::Plugin<InitV1, Descriptor, StateArgs>;
}  // namespace v2

namespace v3 {
struct Coll {
  const char* name;
  uint64_t comm_hash;
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  uint8_t max_channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
};
using P2p = v2::P2p;
struct Descriptor {
  uint8_t type;
  void* parent;
  int32_t rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChV3 kernel_ch;
    NetPlugin net_plugin;
  };
};
using StateArgs = v1::StateArgs;
using Plugin = nccl_abi::Plugin<InitV1, Descriptor, StateArgs>;
}  // namespace v3

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

namespace v4 {
struct Coll {
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
};
struct P2p {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
  uint8_t channels;
};
struct Descriptor {
  uint8_t type;
  void* parent;
  int32_t rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
  };
};
using StateArgs = StateArgsV4;
using Plugin = nccl_abi::Plugin<InitV4, Descriptor, StateArgs>;
}  // namespace v4

namespace v5 {
struct GroupApi {
  bool graph_captured;
  int32_t depth;
};
struct CollApi {
  const char* func;
  size_t count;
  const char* datatype;
  int32_t root;
  void* stream;
  bool graph_captured;
};
struct P2pApi {
  const char* func;
  size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
};
struct KernelLaunch {
  void* stream;
};
struct Coll {
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
  void* parent_group;
};
struct P2p {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
  uint8_t channels;
  void* parent_group;
};
struct Descriptor {
  uint64_t type;
  void* parent;
  int32_t rank;
  union {
    GroupApi group_api;
    CollApi coll_api;
    P2pApi p2p_api;
    KernelLaunch kernel_launch;
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
  };
};
using StateArgs = StateArgsV4;
using Plugin = nccl_abi::Plugin<InitV5, Descriptor, StateArgs>;
}  // namespace v5

namespace v6 {
struct CeColl {
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  const char* sync_strategy;
  bool intra_batch_sync;
  uint32_t batch_size;
  uint32_t batches;
  uint32_t ce_seq;
  void* stream;
};
struct CeSync {
  bool is_complete;
  int32_t ranks;
};
struct CeBatch {
  int32_t ops;
  size_t total_bytes;
  bool use_intra_sync;
};
struct Descriptor {
  uint64_t type;
  void* parent;
  int32_t rank;
  union {
    v5::GroupApi group_api;
    v5::CollApi coll_api;
    v5::P2pApi p2p_api;
    v5::KernelLaunch kernel_launch;
    v5::Coll coll;
    v5::P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
    CeColl ce_coll;
    CeSync ce_sync;
    CeBatch ce_batch;
  };
};
using StateArgs = StateArgsV4;
using Plugin = nccl_abi::Plugin<InitV5, Descriptor, StateArgs>;
}  // namespace v6

namespace v7 {
struct CollApi {
  const char* func;
  size_t count;
  const char* datatype;
  int32_t root;
  void* stream;
  bool graph_captured;
  uint64_t user_tag;
};
struct P2pApi {
  const char* func;
  size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
  uint64_t user_tag;
};
struct Coll {
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algo;
  const char* proto;
  void* parent_group;
  const char* kernel_variant;
  bool is_symmetric;
  uint64_t user_tag;
};
struct P2p {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
  uint8_t channels;
  void* parent_group;
  uint64_t user_tag;
};
struct CeColl {
  uint64_t seq;
  const char* func;
  const void* send_buffer;
  void* recv_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  const char* sync_strategy;
  bool intra_batch_sync;
  uint32_t batch_size;
  uint32_t batches;
  uint32_t ce_seq;
  void* stream;
  uint64_t user_tag;
};
struct KernelPhase {
  uint8_t channel;
  uint8_t phase;
  const char* phase_name;
  uint64_t ptimer;
};
struct Descriptor {
  uint64_t type;
  void* parent;
  int32_t rank;
  union {
    v5::GroupApi group_api;
    CollApi coll_api;
    P2pApi p2p_api;
    v5::KernelLaunch kernel_launch;
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
    CeColl ce_coll;
    v6::CeSync ce_sync;
    v6::CeBatch ce_batch;
    KernelPhase kernel_phase;
  };
};
using StateArgs = StateArgsV4;
using Plugin = nccl_abi::Plugin<InitV5, Descriptor, StateArgs>;
}  // namespace v7

// Payloads behind NetPlugin.data, by id.
inline constexpr int64_t kNetIdIb = 0x10001, kNetIdSocket = 0x20001;
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

#define LOCKSTEP_AT(descriptor, member, field, offset) \
  static_assert(offsetof(descriptor, member) + offsetof(decltype(descriptor::member), field) == (offset))
static_assert(sizeof(v1::Plugin) == 48 && sizeof(v7::Plugin) == 48);
static_assert(offsetof(v5::Plugin, init) == 8 && offsetof(v5::Plugin, finalize) == 40);
static_assert(sizeof(v1::Descriptor) == 120 && sizeof(v2::Descriptor) == 128 &&
              sizeof(v3::Descriptor) == 120);
static_assert(sizeof(v4::Descriptor) == 104 && sizeof(v5::Descriptor) == 112 &&
              sizeof(v6::Descriptor) == 112);
static_assert(sizeof(v7::Descriptor) == 136);
static_assert(sizeof(v1::StateArgs) == 16 && sizeof(StateArgsV4) == 8);
static_assert(sizeof(v1::Coll) == 96 && sizeof(v1::P2p) == 56 && sizeof(v2::Coll) == 104 &&
              sizeof(v2::P2p) == 56);
static_assert(sizeof(v3::Coll) == 96 && sizeof(v4::Coll) == 80 && sizeof(v4::P2p) == 40);
static_assert(sizeof(v5::Coll) == 88 && sizeof(v5::P2p) == 48 && sizeof(v5::CollApi) == 48 &&
              sizeof(v5::P2pApi) == 40);
static_assert(sizeof(v6::CeColl) == 88 && sizeof(v6::CeSync) == 8 && sizeof(v6::CeBatch) == 24);
static_assert(sizeof(ProxyOp) == 24 && sizeof(KernelCh) == 16 && sizeof(NetPlugin) == 16);
static_assert(sizeof(NetIb) == 40 && sizeof(NetSocket) == 24);
static_assert(offsetof(v1::Descriptor, parent) == 8 && offsetof(v1::Descriptor, rank) == 16);
static_assert(offsetof(v5::Descriptor, parent) == 8 && offsetof(v5::Descriptor, rank) == 16);
LOCKSTEP_AT(v1::Descriptor, coll, name, 24);
LOCKSTEP_AT(v1::Descriptor, coll, func, 48);
LOCKSTEP_AT(v1::Descriptor, coll, send_buffer, 56);
LOCKSTEP_AT(v1::Descriptor, coll, count, 72);
LOCKSTEP_AT(v1::Descriptor, coll, datatype, 84);
LOCKSTEP_AT(v1::Descriptor, coll, op, 88);
LOCKSTEP_AT(v1::Descriptor, coll, traffic_bytes, 96);
LOCKSTEP_AT(v1::Descriptor, coll, max_channels, 104);
LOCKSTEP_AT(v1::Descriptor, coll, proto, 107);
LOCKSTEP_AT(v1::Descriptor, coll, is_nvls, 112);
LOCKSTEP_AT(v1::Descriptor, p2p, func, 40);
LOCKSTEP_AT(v1::Descriptor, p2p, datatype, 56);
LOCKSTEP_AT(v1::Descriptor, p2p, count, 64);
LOCKSTEP_AT(v1::Descriptor, p2p, peer, 72);
LOCKSTEP_AT(v1::Descriptor, proxy_op, pid, 24);
LOCKSTEP_AT(v1::Descriptor, proxy_op, channel, 28);
LOCKSTEP_AT(v1::Descriptor, proxy_op, is_send, 44);
LOCKSTEP_AT(v2::Descriptor, coll, datatype, 88);
LOCKSTEP_AT(v2::Descriptor, coll, max_channels, 104);
LOCKSTEP_AT(v2::Descriptor, coll, algo, 112);
LOCKSTEP_AT(v2::Descriptor, coll, proto, 120);
LOCKSTEP_AT(v3::Descriptor, coll, max_channels, 96);
LOCKSTEP_AT(v3::Descriptor, coll, algo, 104);
LOCKSTEP_AT(v4::Descriptor, coll, seq, 24);
LOCKSTEP_AT(v4::Descriptor, coll, datatype, 72);
LOCKSTEP_AT(v4::Descriptor, coll, algo, 88);
LOCKSTEP_AT(v4::Descriptor, p2p, peer, 56);
LOCKSTEP_AT(v4::Descriptor, p2p, channels, 60);
LOCKSTEP_AT(v4::Descriptor, kernel_ch, ptimer, 32);
LOCKSTEP_AT(v5::Descriptor, group_api, depth, 28);
LOCKSTEP_AT(v5::Descriptor, coll_api, stream, 56);
LOCKSTEP_AT(v5::Descriptor, coll_api, graph_captured, 64);
LOCKSTEP_AT(v5::Descriptor, p2p_api, graph_captured, 56);
LOCKSTEP_AT(v5::Descriptor, coll, parent_group, 104);
LOCKSTEP_AT(v5::Descriptor, p2p, parent_group, 64);
LOCKSTEP_AT(v6::Descriptor, ce_coll, sync_strategy, 80);
LOCKSTEP_AT(v6::Descriptor, ce_coll, batch_size, 92);
LOCKSTEP_AT(v6::Descriptor, ce_coll, stream, 104);
LOCKSTEP_AT(v6::Descriptor, ce_sync, ranks, 28);
LOCKSTEP_AT(v6::Descriptor, ce_batch, total_bytes, 32);
LOCKSTEP_AT(v6::Descriptor, ce_batch, use_intra_sync, 40);
LOCKSTEP_AT(v7::Descriptor, coll_api, user_tag, 72);
LOCKSTEP_AT(v7::Descriptor, p2p_api, user_tag, 64);
LOCKSTEP_AT(v7::Descriptor, coll, kernel_variant, 112);
LOCKSTEP_AT(v7::Descriptor, coll, is_symmetric, 120);
LOCKSTEP_AT(v7::Descriptor, coll, user_tag, 128);
LOCKSTEP_AT(v7::Descriptor, p2p, user_tag, 72);
LOCKSTEP_AT(v7::Descriptor, ce_coll, user_tag, 112);
LOCKSTEP_AT(v7::Descriptor, kernel_phase, phase_name, 32);
LOCKSTEP_AT(v7::Descriptor, kernel_phase, ptimer, 40);
#undef LOCKSTEP_AT

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

}  // namespace lockstep::nccl_abi
// clang-format on
