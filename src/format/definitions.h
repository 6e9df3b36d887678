// SPDX-License-Identifier: Apache-2.0
// Definitions: what records name by number. They live in `meta` chunks (one list per process, kinds 1..31)
// and in `defs` chunks (one list per thread log, kinds 32..63) and are never recycled.
//
// Each entry starts with DefHead; `tag` is published last, and holds the kind and the entry's size in units,
// so an unknown kind is skipped. Text is UTF-8 as the host gave it, cut to its field, NUL-terminated.
//
// Who writes: `meta` definitions any thread under the session's lock, `defs` the owner of the log alone. A
// definition is published before the first record that names it, so a reader that has the record finds the
// definition, if no chunk is missing. Numbers come from a file: a reader bounds them before it makes tables
// of them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/file_layout.h"

namespace lockstep::format {

// Kinds of definitions. Numbers are never changed and never used again; a reader skips those that it does not
// know by their size.
enum class Def : uint16_t {
  kNone = 0,
  // meta
  kComm = 1,          // a communicator this process joined (init), or a group declared through lockstep.h
  kCommEnd = 2,       // finalize
  kCommIdentity = 3,  // v1..v3: hash and name learnt from an event
  kAnchor = 4,        // a later ClockAnchor
  kGroupRanks = 5,    // members of a declared group, in pieces
  kNote = 6,          // key=value about the process (text)
  kMode = 7,          // what is recorded from here on (since minor 2)
  kGroup = 8,         // what was said of a declared group beside its members (since minor 5)
  // of AMD's runtime, since minor 7
  kGpuAgent = 9,       // a GPU as HSA lists it
  kGpuQueue = 10,      // a queue, and whether its packets are seen
  kKernelSymbol = 11,  // name of a kernel that was dispatched: a NameDef
  kGpuClock = 12,      // an agent's clock beside the host's
  kHsaCounters = 13,   // what was seen, injected and dropped so far; the newest counts
  // defs
  kLog = 32,         // first entry of a log's first defs chunk: its loss counters
  kThread = 33,      // the thread that owns the log from a position on
  kShape = 34,       // function, types and root of an operation
  kStream = 35,      // a stream handle
  kKernelName = 36,  // the name of a kernel
  kRangeName = 37,   // the name of a range, or of a domain of ranges (since minor 3)
};

// The first unit of every definition. `kind` and `units` are stored last, in one word.
struct DefHead {
  // When it was written, on the file's host clock.
  uint64_t ticks;
  // Comm index, shape or stream number ...; 0 where none. What is counted from 1 leaves 0 for "none".
  uint32_t id;
  // Def; published last together with `units`.
  uint16_t kind;
  // Size of the entry in 16-byte units, head included. Unchecked: format/walk.h bounds it by the chunk.
  uint16_t units;
};
static_assert(sizeof(DefHead) == 16 && offsetof(DefHead, kind) == 12);

// A communicator as its init gave it, or a declared group. NCCL's communicators of plugin versions before v4
// say neither id nor size here; a CommIdentityDef adds what events say. `rank` is that of this member.
struct CommDef {
  DefHead head;  // id = comm index in this process
  // NCCL's commId / commHash, the same on all members; 0 unknown (v1..v3). Declared groups: FNV-1a of full
  // name and ranks. Communicators of one job are joined by it.
  uint64_t comm_id;
  int32_t rank, ranks, nodes;  // of this member, members, hosts; -1 unknown
  // Version of NCCL's profiler interface that reports it, 1..7; 0 for a declared group.
  uint32_t api_version;
  // Kernel thread id of the thread that made it.
  uint32_t tid;
  // CUDA/HIP ordinal current at init, which CUDA_VISIBLE_DEVICES may have renumbered; -1 unknown.
  int32_t device;
  // The same device by bus address, "0000:1b:00.0"; empty unknown.
  char pci[16];
  // And by UUID; zero unknown.
  unsigned char uuid[16];
  // As the program or the framework named it; of a declared group "description:name".
  char name[64];
};
// NCCL destroyed the communicator. Many jobs exit without; events may follow it where resources are shared.
struct CommEndDef {
  DefHead head;  // id = comm index
};
// Plugin interfaces before v4 say who a communicator is only in their first event: hash and name of comm
// `id`.
struct CommIdentityDef {
  DefHead head;      // id = comm index
  uint64_t comm_id;  // as CommDef::comm_id
  char name[56];
};
// The keeper adds anchors while the process runs, so that a drift of the tick rate shows: after 0.1 s, a
// second later, then every 10 s, and once at close.
struct AnchorDef {
  DefHead head;
  ClockAnchor anchor;
  uint64_t reserved0;
};
// Members of a declared group, where they are known, in pieces of at most 62. Global ranks; pieces of one
// group follow each other.
struct GroupRanksDef {
  DefHead head;  // id = comm index
  // Members [first, first + n) of the group. Both come from a file: a reader takes 62 of a piece at most, in
  // the order of the pieces.
  uint32_t first, n;
  int32_t ranks[62];
};
// What was said of a declared group beside its members, since minor 5. Of several for one group the newest
// counts: `rank` may be learnt later than the group was declared.
struct GroupDef {
  DefHead head;           // id = comm index
  int32_t start, stride;  // of the members' global ranks; -1 not said, or no progression
  int32_t rank;           // -1 unknown
  uint32_t is_apart;      // 1: name and description were said apart; 0: the name may be "description:name"
  char name[112], description[112];
};
// A fact about the process as text. Of some keys the newest counts, others come once for each thing (see
// below). Keys that a reader does not know are passed over.
struct NoteDef {
  DefHead head;  // id 0
  char key[48];
  char value[192];
};
// What CUPTI is asked for, or why nothing. The newest counts.
inline constexpr char kNoteGpuRecords[] = "gpu_records";
// Of the first GPU used: "NVIDIA H200", "PCI 1002:74a1". Once.
inline constexpr char kNoteGpuModel[] = "gpu_model";
// Why AMD kernels are not, or not all, timed.
inline constexpr char kNoteHsa[] = "hsa";
// The NCCL or RCCL that calls, as it is mapped: "BUILDID VERSION PATH"; and others of that name, one a note,
// version 0.
inline constexpr char kNoteNcclLibrary[] = "nccl_library", kNoteOtherNccl[] = "other_nccl_library";
// LOCKSTEP_CHAIN: "Inspector v5, /path", "none: why".
inline constexpr char kNoteChained[] = "chained_plugin";
// Events that the chained plugin did not get. The newest counts.
inline constexpr char kNoteChainMissed[] = "chained_plugin_missed";
// Who asked for a mode: the environment, `lockstep control`, or the end of a window that it had set.
enum class ModeReason : uint32_t { kStart = 0, kControl = 1, kWindowEnd = 2 };
// What is recorded from `head.ticks` on, until the next one. The first is written when capture starts. A
// reader needs them to tell an event that did not happen from one that was not asked for.
struct ModeDef {
  DefHead head;        // `ticks`: from when on; id 0
  uint32_t mode;       // Mode
  uint32_t keep, of;   // kSample: deep events of `keep` of every `of` operations
  uint32_t comms;      // deep events of so many communicators only; 0: of all. Which ones is not kept
  uint64_t min_bytes;  // deep events of operations of at least so many bytes
  // End of a window, CLOCK_MONOTONIC of the host in ns; 0: until further notice.
  int64_t until_monotonic_ns;
  ModeReason reason;
  uint32_t reserved0;
  uint64_t reserved1;
};
// The loss counters of a log, by `Loss` (format/losses.h), those below kLossKinds. They count on in place, so
// no seal covers them.
struct LogDef {
  DefHead head;                 // id = 1 + slot of the log
  uint64_t losses[kLossKinds];  // live; owner thread only
};
// From `from_position` on the log belongs to this thread: a log whose thread ended goes to the next new one.
struct ThreadDef {
  DefHead head;  // id = kernel thread id
  uint64_t from_position;
  char name[16];     // comm name of the thread when it registered
  uint64_t pthread;  // pthread_self(); 0 unknown (before minor 2)
};
// What operations of a log are, so that a record names five facts by one number. Also the text of marks,
// phases. Two logs number the same facts differently, so a number means nothing without its log; a log may
// define one shape twice.
struct ShapeDef {
  DefHead head;  // id = shape number of this log, from 1
  int32_t root;  // rank in the communicator, as reported; lockstep.h: -1 none
  uint32_t reserved0;
  char func[40];  // "AllReduce" as NCCL says it, "allreduce" as a program does; also: mark name, phase name
  char datatype[24];  // in the reporter's spelling; format/element_size.h reads it
  char algo[24];      // also: CE sync strategy, v7 kernel variant
  char proto[16];
};
// A stream handle as the program passed it. The value is never followed: it is compared only, and a handle
// that the program destroyed may come back as another stream.
struct StreamDef {
  DefHead head;     // id = stream number of this log, from 1
  uint64_t stream;  // pointer value
  uint64_t reserved0;
};
// A GPU as HSA lists it, since minor 7. `place` orders the GPUs of a host, whatever the process sees of them,
// so that files of several processes name one GPU alike.
struct GpuAgentDef {
  DefHead head;              // id = number in this process, from 0: the n-th GPU that HSA lists
  uint64_t tick_hz;          // of its clock; 0 unknown
  uint32_t node;             // number of the kernel driver; 0 unknown
  int32_t place;             // among the host's GPUs by PCI address; -1 unknown
  char pci[16];              // "0000:c1:00.0"
  char uuid[32];             // "GPU-7f8e..." as HSA gives it
  char name[48], model[48];  // "gfx942", "AMD Instinct MI300X"
};
// How the program made the queue: kCounted queues cannot be intercepted, nor those of kDescribed that ask for
// what an intercept queue does not have.
enum class QueuePath : uint16_t { kCreate = 0, kCounted = 1, kDescribed = 2 };
// What is known of the kernels of a queue.
enum class QueueState : uint16_t {
  kTraced = 0,    // its packets are seen and timed
  kObserved = 1,  // another tool's signals are in them: seen, not timed
  kPlain = 2,     // an intercept queue could not be made: not seen
};
// A queue of AMD's runtime, and whether kernels put on it are seen and timed. Since minor 7.
struct GpuQueueDef {
  DefHead head;       // id = number in this process, from 1
  uint64_t queue_id;  // the runtime's, as the program and other tools know it
  uint32_t packets;   // size of its ring
  uint16_t agent;     // GpuAgentDef
  QueuePath path;
  QueueState state;
  uint16_t reserved0;
  uint32_t status;  // of the runtime, for kPlain
  uint64_t reserved1;
};
// Ties an agent's clock to the host's, since minor 7; readers map raw stamps by it. `head.ticks`,
// `system_now`: one instant. `system`: what the runtime makes of the agent's `ticks`.
struct GpuClockDef {
  DefHead head;  // id = GpuAgentDef
  uint64_t ticks, system, system_now;
  uint64_t system_hz;  // of the last two
  uint32_t width_ns;   // host time that reading `system_now` took
  uint32_t reserved0;
  uint64_t reserved1;
};
// Room for counters to come; 0 in files of writers that did not have them.
inline constexpr uint32_t kMostHsaCounters = 32;
// What the HSA library counted until `head.ticks`, since minor 7. It is written again and again; the newest
// counts. A counter that the writer did not have yet is 0.
struct HsaCountersDef {
  DefHead head;
  uint64_t counts[kMostHsaCounters];  // format/hsa_counters.def
};
// A name of its own length: `units` of the head counts it, NUL included. One that is too long is cut. A
// reader looks for the NUL within the entry and takes what is there if there is none.
struct NameDef {
  DefHead head;   // id = number of this log and kind (kKernelSymbol: of the process), from 1
  char name[16];  // and on: a kernel's mangled, as the driver gives it; at most so many bytes with its NUL:
};
inline constexpr uint32_t kMaxKernelNameBytes = 1024, kMaxRangeNameBytes = 256;
// As this version writes them. A newer one may add at the end: readers go by `units` of the head.
#define LOCKSTEP_DEF_SIZE(type, bytes) \
  static_assert(sizeof(type) == (bytes) && sizeof(type) % kUnitBytes == 0)
LOCKSTEP_DEF_SIZE(CommDef, 144);
LOCKSTEP_DEF_SIZE(CommEndDef, 16);
LOCKSTEP_DEF_SIZE(CommIdentityDef, 80);
LOCKSTEP_DEF_SIZE(AnchorDef, 64);
LOCKSTEP_DEF_SIZE(GroupRanksDef, 272);
LOCKSTEP_DEF_SIZE(GroupDef, 256);
LOCKSTEP_DEF_SIZE(NoteDef, 256);
LOCKSTEP_DEF_SIZE(ModeDef, 64);
LOCKSTEP_DEF_SIZE(LogDef, 208);
LOCKSTEP_DEF_SIZE(ThreadDef, 48);
LOCKSTEP_DEF_SIZE(ShapeDef, 128);
LOCKSTEP_DEF_SIZE(StreamDef, 32);
LOCKSTEP_DEF_SIZE(NameDef, 32);
LOCKSTEP_DEF_SIZE(GpuAgentDef, 176);
LOCKSTEP_DEF_SIZE(GpuQueueDef, 48);
LOCKSTEP_DEF_SIZE(GpuClockDef, 64);
LOCKSTEP_DEF_SIZE(HsaCountersDef, 272);
#undef LOCKSTEP_DEF_SIZE

// Ring retention: what was overwritten still counts here. A histogram chunk is a ChunkHeader, then cells.
// Owner thread writes; a reader adds up cells of equal (comm, kind, func, bucket) over all logs of all
// processes. Cells change in place and have no seal, so a copy may hold a sum of one moment and a count of
// another.
inline constexpr uint32_t kHistogramBuckets = 20;
// Sums over operations of one communicator, kind, shape and size. `ops`, `bytes` and the ticks are of
// operations, the rest of those whose duration is known. Which log's shapes the key names is `shape_log`: an
// operation may start on one thread and be timed on another.
struct HistogramCell {
  // 0 = free. comm << 32 | shape << 16 | size bucket (log2 of bytes, rounded up) << 8 | record kind
  uint64_t key;
  uint64_t ops;
  // Sum over the operations: of a Coll or P2p, count times element size; of an ApiOp, the greater of what
  // goes in and what comes out.
  uint64_t bytes;
  // Starts of the first and of the last of them, on the file's host clock.
  uint64_t first_ticks, last_ticks;
  // Operations (or channels) with a duration.
  uint64_t timed;
  // GPU time per channel for Coll and P2p; host time for ApiOp.
  uint64_t sum_ns, min_ns, max_ns;
  // [i]: durations below 2^(10+i) ns and not in [i-1]; the last is open-ended.
  uint32_t buckets[kHistogramBuckets];
  // 1 + slot of the log whose shape table the key's shape number belongs to.
  uint32_t shape_log;
  uint32_t reserved0;
};
static_assert(sizeof(HistogramCell) == 160);
inline constexpr uint32_t kHistogramCells = (kChunkBytes - sizeof(ChunkHeader)) / sizeof(HistogramCell);

}  // namespace lockstep::format
