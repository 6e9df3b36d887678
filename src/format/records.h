// SPDX-License-Identifier: Apache-2.0
// Event records of a thread log. One record per event: written at the start, filled in as the event advances.
//
//            0         8          12    13     14       16
//            +---------+----------+-----+------+--------+---------------------+
//            | start   | stop     |kind |flags | link   | fields of the kind  |
//            +---------+----------+-----+------+--------+---------------------+
//                      '---- tag word: published last --'
//
// Clock: `start` is the file's host clock in ticks; every `*_after` is ticks since `start`, 0 = did not
// happen, kSaturated = did not fit: a StateRecord holds the exact time. States and stops that arrive on
// another thread than the start are StateRecords in that thread's log, naming the handle.
//
// Parents: `link` is the distance, in units, back to the parent's record in the same log; 0 = none, kFarLink
// = a LinkRecord names it. Kinds whose parent normally lives in another log carry its handle by value
// instead.
//
// GPU times are raw: nanoseconds of the GPU's own clock (NVIDIA) or wall_clock64 ticks (AMD);
// FileHeader.gpu_clock. Kernels and copies (files of source kCuda) are the exception: the driver's tools
// interface gives their times on a clock of the host, and `start` and `stop_after` hold them. They are
// written when they are delivered, so a log is not in the order of `start`. Those of AMD (source kHsa) are
// two records: what was submitted, and its times.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/file_layout.h"

namespace lockstep::format {

// One byte on disk, from record_kinds.def; handles carry it in 5 bits.
enum class Kind : uint8_t {
  kNone = 0,
#define RECORD(kind, name, type, event) k##name = kind,
#include "format/record_kinds.def"
#undef RECORD
};

// Values that a field takes instead of a number. kShapeUnknown: the log's table of shapes was full.
inline constexpr uint32_t kSaturated = 0xffffffff;
inline constexpr uint16_t kFarLink = 0xffff;
inline constexpr uint16_t kNoShape = 0;  // shapes and streams count from 1
inline constexpr uint16_t kShapeUnknown = 0xffff;

// Flags of RecordHead. A bit means what its kind makes of it: some kinds use one bit for different things.
inline constexpr uint8_t kFlagGraphCaptured = 0x01;
inline constexpr uint8_t kFlagForeign = 0x02;    // context or parent came from another process; by value
inline constexpr uint8_t kFlagSend = 0x04;       // ProxyOp, ProxyStep: send side
inline constexpr uint8_t kFlagComplete = 0x08;   // CeSync.isComplete
inline constexpr uint8_t kFlagIntraSync = 0x10;  // CeBatch.useIntraSync, CeColl.intraBatchSync
inline constexpr uint8_t kFlagSymmetric = 0x20;  // Coll.isSymColl (v7)
inline constexpr uint8_t kFlagGpuTimes = 0x40;   // ApiOp: gpu_start and gpu_end were given
// ApiOp, since this minor
inline constexpr uint16_t kMinorOfDeclaredFlags = 5;
inline constexpr uint8_t kFlagSeqKnown = 0x02;  // seq is one less than the program's number, not counted here
inline constexpr uint8_t kFlagP2p = 0x04;       // PyTorch's isP2P
inline constexpr uint8_t kFlagAsyncKnown = 0x08;  // whether the caller waits for it is known
inline constexpr uint8_t kFlagAsync = 0x10;       // it does not
inline constexpr uint8_t kFlagMoved = 0x01;       // LinkRecord
inline constexpr uint8_t kFlagSystemThread =
    0x01;  // LaunchCall: `thread` is the kernel's number of the thread
// Dispatch, since minor 7
inline constexpr uint8_t kFlagSignalled = 0x01;  // the packet had a signal of the program's
inline constexpr uint8_t kFlagUntimed = 0x02;    // no GpuTimes will follow: DispatchRecord.untimed says why
inline constexpr uint8_t kFlagStopped = 0x80;    // stop arrived (stop_after may be kSaturated)

// The first unit of every record. The owner thread of the log writes it; a reader trusts nothing of a record
// whose `kind` is 0.
struct RecordHead {
  uint64_t start;       // ticks
  uint32_t stop_after;  // ticks since start; at least 1 once stopped
  Kind kind;
  uint8_t flags;
  uint16_t link;
};
static_assert(sizeof(RecordHead) == 16 && offsetof(RecordHead, kind) == 12);

// From the first operation of the program's group to its outermost group end; the launch may come later.
// `depth` is as NCCL reports it at the start.
struct GroupApiRecord {
  RecordHead head;
  uint32_t comm;               // index of a CommDef of this process; kNoComm
  uint32_t group_start_after;  // state 23
  uint32_t group_end_after;    // state 24
  uint32_t depth;
};
// What the program asked for. Its start and stop bracket the queueing inside the call, 1 to 2 us, and not the
// operation. `count` is in elements as the program passed them, of the shape's datatype.
struct CollApiRecord {
  RecordHead head;  // link -> GroupApi
  uint64_t count;
  uint32_t comm;
  uint16_t shape;   // func, datatype, root
  uint16_t stream;  // StreamDef of this log
};
// The same of a send or a receive. NCCL does not say here who the peer is: the P2p record does.
struct P2pApiRecord {
  RecordHead head;  // link -> GroupApi
  uint64_t count;
  uint32_t comm;
  uint16_t shape;  // func, datatype
  uint16_t stream;
};
// The launch on the CPU, or its recording into a graph. The GPU's own time is in KernelCh or Kernel records.
struct KernelLaunchRecord {
  RecordHead head;  // link -> GroupApi
  uint32_t comm;
  uint16_t stream;
  uint16_t reserved0;
  uint64_t reserved1;
};
// A kernel plan of NCCL's, which is one kernel. It is not the program's group: that is GroupApi.
struct GroupRecord {
  RecordHead head;
  uint32_t comm;
  uint32_t reserved0;
  uint64_t reserved1;
};
// A collective as NCCL enqueues it. Its stop ends the bookkeeping and does not mean that the GPU is done:
// completion is known from KernelCh, from Kernel, or not at all.
struct CollRecord {
  RecordHead head;  // link -> CollApi (v5+) or Group (v1-v4)
  uint64_t count;   // as NCCL reports it: bytes for AllGather and Broadcast
  uint64_t send_buffer;
  uint64_t recv_buffer;
  uint64_t seq;
  uint32_t comm;
  uint16_t shape;  // func, datatype, algo, proto, root
  uint8_t channels;
  uint8_t warps;
  uint32_t group_link;  // units back to the Group record in this log; 0 = none
  uint32_t reserved0;
};
// A Coll whose numbers fit into fewer bytes, as nearly all do; its handle has this kind. `expand` gives the
// CollRecord.
struct ShortCollRecord {
  RecordHead head;
  uint64_t count;
  uint32_t send_buffer_low, recv_buffer_low;
  uint16_t send_buffer_high, recv_buffer_high;  // bits 32..47
  uint32_t seq;
  uint16_t comm;
  uint16_t shape;
  uint8_t channels;
  uint8_t warps;
  uint16_t group_link;
};
// A send or a receive as NCCL enqueues it; `head.stop_after` means as little as that of a Coll.
struct P2pRecord {
  RecordHead head;  // link -> P2pApi (v5+) or Group (v1-v4)
  uint64_t count;
  uint64_t buffer;
  uint32_t comm;
  int32_t peer;
  uint32_t group_link;
  uint16_t shape;  // func, datatype
  uint8_t channels;
  uint8_t reserved0;
};
// Network work of one channel, direction and peer, as a proxy thread drives it. Sizes are in bytes. The
// parent Coll or P2p normally lies in another thread's log, and with PXN in another process's file.
struct ProxyOpRecord {
  RecordHead head;
  uint64_t parent;   // handle as passed
  uint64_t context;  // as passed
  int32_t pid;       // of the originator
  int32_t peer;
  int32_t steps;
  int32_t chunk_size;
  int32_t rank;                // originator's rank in the comm
  uint32_t in_progress_after;  // state 19 (>= 2.27)
  uint8_t channel;
  uint8_t reserved0[7];
};
// One transfer of a ProxyOp. The first report of each state is kept; the numbers are NCCL's states
// (src/capture/nccl/abi). The waits divide the time from start to stop, and say who is waited for:
//   send:     8 .. the GPU has no data yet .. 20 .. the peer has not posted .. 9 .. wire .. stop
//   receive:  start .. no free request .. 10 .. sender or wire .. 11 .. flush .. 12 .. the GPU takes .. stop
struct ProxyStepRecord {
  RecordHead head;
  uint64_t parent;       // handle of a ProxyOp, normally in this log
  uint32_t wait1_after;  // send: 8 (waiting for the GPU)      recv: 10 (irecv posted)
  uint32_t wait2_after;  // send: 20 (waiting for the peer)    recv: 11 (received, flush pending)
  uint32_t wait3_after;  // send: 9 (isend accepted)           recv: 12 (waiting for the GPU to consume)
  uint32_t bytes;        // transSize of state 9 or 11
  int32_t step;
  uint16_t peer_waits;  // how often state 20 was reported
  uint16_t restarts;    // duplicate starts folded into this record
};
// What a proxy thread does between operations: idle, active, asleep, or taking new operations.
struct ProxyCtrlRecord {
  RecordHead head;
  uint32_t comm;
  uint32_t first_after;   // first state
  uint32_t second_after;  // second state (16 wakeup, 18 append end)
  uint16_t appended;      // ops appended, from state 18
  uint8_t first_state;    // 13..18; 0 none
  uint8_t second_state;
};
// One channel's GPU work of a Coll or P2p. `start` is when the host noticed that it had begun, and
// `gpu_stop_seen_after` when it noticed the end; `gpu_start` and `gpu_stop` are raw times of the GPU's clock.
struct KernelChRecord {
  RecordHead head;  // link holds the channel
  uint64_t parent;  // handle of a Coll or P2p
  uint64_t gpu_start;
  uint64_t gpu_stop;  // 0 until state 22
  uint32_t comm;
  uint32_t gpu_stop_seen_after;
};
// A part of a Coll's GPU work (v7): initial synchronisation, computation, final synchronisation. Raw GPU
// times.
struct KernelPhaseRecord {
  RecordHead head;  // link holds the channel
  uint64_t parent;
  uint64_t gpu_start;
  uint64_t gpu_stop;
  uint32_t comm;
  uint16_t phase_name;  // shape whose func is the phase name
  uint8_t phase;
  uint8_t reserved0;
};
// An event of NCCL's network plugin. Stock builds report none.
struct NetPluginRecord {
  RecordHead head;
  uint64_t parent;   // handle of a ProxyStep
  int64_t id;        // type << 16 | version
  uint32_t updates;  // how often state 21 was reported
  uint32_t last_update_after;
  uint8_t payload[40];  // copied when the id is one we know, else zero
};
// A collective that NCCL gives to copy engines instead of a kernel (v6); its stop ends the enqueueing.
struct CeCollRecord {
  RecordHead head;  // link -> CollApi
  uint64_t count;
  uint64_t send_buffer;
  uint64_t recv_buffer;
  uint64_t seq;
  uint32_t comm;
  uint16_t shape;  // func, datatype, sync strategy as algo, root
  uint16_t stream;
  uint32_t ce_seq;
  uint32_t batch_size;
  uint32_t batches;
  uint32_t reserved0[3];
};
// A synchronisation of a CeColl's ranks.
struct CeSyncRecord {
  RecordHead head;  // link -> CeColl
  uint32_t comm;
  int32_t ranks;
  uint64_t reserved0;
};
// A batch of a CeColl's copies; `bytes` and `ops` are of the whole batch.
struct CeBatchRecord {
  RecordHead head;  // link -> CeColl
  uint64_t bytes;
  uint32_t comm;
  int32_t ops;
};
// Clock of GPU times that the caller gave: this host's, or the GPU's own (NVIDIA ns, AMD wall_clock64 ticks).
enum class ApiClock : uint16_t { kNone = 0, kMonotonic = 1, kRealtime = 2, kGpuNs = 3, kGpuTicks = 4 };
// An operation bracketed through include/lockstep/lockstep.h.
struct ApiOpRecord {
  RecordHead head;
  uint64_t in_count;
  uint64_t out_count;
  uint64_t stream;
  uint64_t gpu_start;  // valid with kFlagGpuTimes, as given
  uint64_t gpu_end;
  // n-th on this group in this process, from 0; collectives and send/recv apart. 2^64 - 1: said to be 0
  uint64_t seq;
  uint32_t comm;
  uint16_t shape;          // func, datatype, algo, root (-1 none)
  uint16_t gpu_clock;      // of gpu_start and gpu_end: ApiClock
  int32_t peer;            // -1 none
  uint32_t element_bytes;  // of datatype; 1 where unknown
};
// A kernel as the GPU ran it. `start` and `stop_after`: its first and last moment on the GPU, in host ticks.
struct KernelRecord {
  RecordHead head;       // kFlagStopped always
  uint32_t name;         // of this log (Def::kKernelName); 0 unknown
  uint32_t correlation;  // of the call that launched it; all kernels of one graph launch share it
  uint32_t stream;       // the driver's number of the stream, not its pointer
  uint16_t device;       // ordinal in this process
  uint16_t context;
  uint64_t graph_node;  // 0: not of a graph
  uint32_t graph;       // of the executable graph; 0 none
  uint32_t blocks;      // of the grid; NCCL starts one a channel
};
// What a call of the driver launched.
enum class LaunchCall : uint16_t { kNone = 0, kKernel = 1, kGraph = 2 };
// A call of the driver that launched a kernel or a graph, by host time.
struct LaunchCallRecord {
  RecordHead head;
  uint32_t correlation;
  uint32_t
      thread;  // low half of the caller's pthread_self() (ThreadDef.pthread), or by kFlagSystemThread its tid
  LaunchCall call;
  uint16_t reserved0;
  uint32_t reserved1;
};
// By the kind of CUPTI's record: a copy, a copy from one GPU to another, a fill.
enum class CopyKind : uint16_t { kNone = 0, kCopy = 1, kPeerCopy = 2, kSet = 3 };
// A copy, or a fill, as a copy engine or the GPU ran it; times as those of a kernel.
struct CopyRecord {
  RecordHead head;  // kFlagStopped always
  uint64_t bytes;
  uint32_t correlation;
  uint32_t stream;
  uint16_t device;
  uint16_t context;
  CopyKind copy;
  uint8_t from, to;  // CUPTI's kinds of memory: 1 pageable, 2 pinned, 3 device ...; 0 unknown
  uint64_t graph_node;
};
// Pushed and popped, or started and ended.
enum class RangeKind : uint16_t { kNone = 0, kNested = 1, kFree = 2 };
// A range that the program marked through NVTX, since minor 3: pushed and popped, nested on its thread, or
// started and ended, anywhere. One that never ended has no stop.
struct RangeRecord {
  RecordHead head;
  uint32_t name;    // of this log (Def::kRangeName); 0 none
  uint32_t domain;  // name of its domain, by the same numbers; 0: the default domain
  RangeKind range;
  uint16_t reserved0;
  uint32_t reserved1;
};
// A point in time: a training step, or a named mark.
struct MarkRecord {
  RecordHead head;
  uint64_t value;    // step number
  uint16_t shape;    // shape whose func is the mark's name
  uint16_t is_step;  // 1: a step begins
  uint32_t reserved0;
};
// A state or stop that its own record could not take: another thread, an old chunk, a value too large, or a
// state that repeats (the per-step states 0..7 of NCCL before 2.27).
struct StateRecord {
  RecordHead head;  // start = when; stop_after = second argument (cumulative steps for states 0..7)
  uint64_t target;  // handle
  uint64_t value;   // transSize, pTimer or appended ops
};
// StateRecord.head.link: the state number, or
inline constexpr uint16_t kStateStop = 0x100;
inline constexpr uint16_t kStateGpuStart =
    0x101;  // ApiOp: value = gpu_start or gpu_end, second argument = gpu_clock
inline constexpr uint16_t kStateGpuEnd = 0x102;
// The parent of the event whose record follows or precedes, by handle. With kFlagMoved (ring retention)
// another thing: the record of `child` was written again, as its event was open when its chunk was
// overwritten; the host, and whatever names the event, knows it by the handle `parent`.
struct LinkRecord {
  RecordHead head;
  uint64_t child;
  uint64_t parent;
};
// The userTag that the program gave NCCL for an operation (v7), where it is not 0.
struct UserTagRecord {  // v7 userTag of an operation, when not 0
  RecordHead head;
  uint64_t child;
  uint64_t tag;
};
// Numbers of an ApiOp's split list, since minor 5, behind its record. Of a longer list the first kSplitsKept
// - 1 and the last are kept: PyTorch prints no more.
struct SplitsRecord {
  RecordHead head;
  uint64_t child;  // handle
  uint32_t total;  // numbers of the list
  uint16_t first;  // place of values[0] among those that are kept
  uint8_t is_out;  // 0: of the input
  uint8_t n;       // values used
  int64_t values[4];
};
inline constexpr uint32_t kSplitsKept = 30;

// Why a dispatch has no times: another tool's signals are in the packets of its queue, or none of ours was
// free.
enum class Untimed : uint8_t { kNone = 0, kObserved = 1, kNoSignal = 2 };
// A kernel that was put on a queue of AMD's runtime (HSA), since minor 7; `start`: when. It is on its way
// until a GpuTimes names it, or kFlagUntimed says that none will.
struct DispatchRecord {
  RecordHead head;
  uint64_t arguments;  // first word of an RCCL kernel's arguments: its communicator on the device; 0 not read
  uint32_t symbol;     // Def::kKernelSymbol of the process; 0 unknown
  uint32_t sequence;   // n-th dispatch of its queue, from 1
  uint16_t queue;      // Def::kGpuQueue
  uint16_t agent;      // Def::kGpuAgent
  uint32_t grid[3];    // work items
  uint16_t group[3];   // work items of a work group
  Untimed untimed;
  uint8_t reserved0;
  uint32_t private_bytes, group_bytes;  // of a work item, of a work group
};
// A copy that was given to AMD's runtime, since minor 7; `start`: when. Its times are a GpuTimes.
struct QueuedCopyRecord {
  RecordHead head;
  uint64_t bytes;
  uint16_t from, to;  // Def::kGpuAgent; kHostAgent
  uint32_t reserved0;
};
inline constexpr uint16_t kHostAgent = 0xffff;
// Which clock the stamps are of, and what is wrong with them: not both were there, or they do not go forward.
enum class TimesClock : uint16_t { kAgent = 0, kSystem = 1 };
enum class TimesProblem : uint16_t { kNone = 0, kNotStamped = 1, kDisordered = 2 };
// When the GPU did what the record `target` submitted, since minor 7; `start`: when that was seen.
struct GpuTimesRecord {
  RecordHead head;
  uint64_t target;               // handle
  uint64_t gpu_start, gpu_stop;  // by `clock`: ticks of the agent, or of HSA's system clock; as stamped
  TimesClock clock;
  TimesProblem problem;
  uint32_t reserved0;
};

// On disk: a reader steps over records by these sizes, so none ever changes.
#define LOCKSTEP_RECORD_SIZE(type, bytes) \
  static_assert(sizeof(type) == (bytes) && sizeof(type) % kUnitBytes == 0)
LOCKSTEP_RECORD_SIZE(GroupApiRecord, 32);
LOCKSTEP_RECORD_SIZE(CollApiRecord, 32);
LOCKSTEP_RECORD_SIZE(P2pApiRecord, 32);
LOCKSTEP_RECORD_SIZE(KernelLaunchRecord, 32);
LOCKSTEP_RECORD_SIZE(GroupRecord, 32);
LOCKSTEP_RECORD_SIZE(CollRecord, 64);
LOCKSTEP_RECORD_SIZE(ShortCollRecord, 48);
LOCKSTEP_RECORD_SIZE(P2pRecord, 48);
LOCKSTEP_RECORD_SIZE(ProxyOpRecord, 64);
LOCKSTEP_RECORD_SIZE(ProxyStepRecord, 48);
LOCKSTEP_RECORD_SIZE(ProxyCtrlRecord, 32);
LOCKSTEP_RECORD_SIZE(KernelChRecord, 48);
LOCKSTEP_RECORD_SIZE(KernelPhaseRecord, 48);
LOCKSTEP_RECORD_SIZE(NetPluginRecord, 80);
LOCKSTEP_RECORD_SIZE(CeCollRecord, 80);
LOCKSTEP_RECORD_SIZE(CeSyncRecord, 32);
LOCKSTEP_RECORD_SIZE(CeBatchRecord, 32);
LOCKSTEP_RECORD_SIZE(ApiOpRecord, 80);
LOCKSTEP_RECORD_SIZE(KernelRecord, 48);
LOCKSTEP_RECORD_SIZE(LaunchCallRecord, 32);
LOCKSTEP_RECORD_SIZE(CopyRecord, 48);
LOCKSTEP_RECORD_SIZE(RangeRecord, 32);
LOCKSTEP_RECORD_SIZE(MarkRecord, 32);
LOCKSTEP_RECORD_SIZE(StateRecord, 32);
LOCKSTEP_RECORD_SIZE(LinkRecord, 32);
LOCKSTEP_RECORD_SIZE(UserTagRecord, 32);
LOCKSTEP_RECORD_SIZE(SplitsRecord, 64);
LOCKSTEP_RECORD_SIZE(DispatchRecord, 64);
LOCKSTEP_RECORD_SIZE(QueuedCopyRecord, 32);
LOCKSTEP_RECORD_SIZE(GpuTimesRecord, 48);
#undef LOCKSTEP_RECORD_SIZE

// Whether a Coll's numbers fit into a ShortCollRecord. A comm of kNoComm does not.
constexpr bool fits_short_coll(uint64_t send_buffer, uint64_t recv_buffer, uint64_t seq, uint32_t comm,
                               uint32_t group_link) {
  return ((send_buffer | recv_buffer) >> 48 | seq >> 32 | (comm | group_link) >> 16) == 0;
}
// What the short form stands for. Its handles keep the kind kShortColl.
constexpr CollRecord expand(const ShortCollRecord& r) {
  CollRecord coll{};
  coll.head = r.head;
  coll.head.kind = Kind::kColl;
  coll.count = r.count;
  coll.send_buffer = uint64_t{r.send_buffer_high} << 32 | r.send_buffer_low;
  coll.recv_buffer = uint64_t{r.recv_buffer_high} << 32 | r.recv_buffer_low;
  coll.seq = r.seq;
  coll.comm = r.comm;
  coll.shape = r.shape;
  coll.channels = r.channels;
  coll.warps = r.warps;
  coll.group_link = r.group_link;
  return coll;
}

// Bytes of a record by kind; 0 for a kind unknown to this version.
constexpr uint32_t record_bytes(uint8_t kind) {
  switch (kind) {
#define RECORD(number, name, type, event) \
  case number:                            \
    return sizeof(type);
#include "format/record_kinds.def"
#undef RECORD
    default:
      return 0;
  }
}
// Whether a record of this kind is an event, which has a stop and late fields; false for unknown kinds.
constexpr bool is_event(uint8_t kind) {
  switch (kind) {
#define RECORD(number, name, type, event) \
  case number:                            \
    return event;
#include "format/record_kinds.def"
#undef RECORD
    default:
      return false;
  }
}

}  // namespace lockstep::format
