// SPDX-License-Identifier: Apache-2.0
// The process file (`*.lks`): header, then fixed-size chunks. docs/format.md draws it.
//
//   0        4096                36864               69632
//   +--------+-------------------+-------------------+----
//   | header | chunk 0           | chunk 1           | ...
//   +--------+-------------------+-------------------+----
//
// A chunk belongs to one purpose: `meta` (one lock-guarded list per process), or to one thread log:
// `defs` (definitions of that thread: thread names, shapes, streams), `records` (its events), `histogram`.
// Within a log and purpose, chunks are numbered 0, 1, 2, ...; a record's *position* is
//   position = chunk_no * kUnitsPerChunk + (byte offset in chunk) / kUnitBytes
// which is unique for the life of the log, also in ring retention where the bytes are recycled.
//
// Every entry starts at a 16-byte unit. An entry is published by the store of its tag word (kind != 0),
// made after all its other bytes; before publishing, the writer zeroes the tag word of the unit behind it.
// So a reader stops at the first zero tag, and what a crash can cost is the one entry being written.
//
// Which store publishes what, and in which order it is read on a CPU that keeps none: docs/format.md, proved
// in tests/memory_order/protocols_test.cc. Nothing here relies on a CPU that keeps its stores in order.
//
// All fields are little-endian. Zero means "not written". Unknown record kinds are skipped by size.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/control_words.h"

namespace lockstep::format {

// The magic's line ends and its byte above 127 show a transfer that took the file for text.
inline constexpr unsigned char kMagic[8] = {0x89, 'L', 'K', 'S', '\r', '\n', 0x1a, '\n'};
// What a reader has to know before it believes a size. A new major changes what is there; a minor only adds:
// fields where zeros were, kinds, and flags.
inline constexpr uint16_t kMajor = 1;  // a reader refuses a newer major
inline constexpr uint16_t kMinor = 7;  // a reader accepts any minor
// Sizes of the layout, in bytes. The header repeats them, and a reader refuses a file that has others.
inline constexpr uint32_t kHeaderBytes = 4096;
inline constexpr uint32_t kChunkBytes = 32768;
inline constexpr uint32_t kUnitBytes = 16;
inline constexpr uint32_t kUnitsPerChunk = kChunkBytes / kUnitBytes;
inline constexpr uint32_t kChunkMagic = 0x4b4e4843;  // "CHNK"
// Thread logs of one process at a time; a log whose thread ended goes to the next. More are counted (no_log).
inline constexpr uint32_t kMaxLogs = 1024;
inline constexpr uint32_t kLossKinds = 24;     // of those that a log counts
inline constexpr uint32_t kAllLossKinds = 40;  // and of those that only the header counts
inline constexpr uint32_t kSealBlocks = 8;     // of a chunk, 4 KiB each

// Which capture library wrote the file. Events of several files of one process are joined by readers.
enum class Source : uint8_t { kNone = 0, kNccl = 1, kApi = 2, kCuda = 3, kHsa = 4 };
// The clock of the file's `ticks`: the CPU's cycle counter where that is invariant, else CLOCK_MONOTONIC in
// ns.
enum class HostClock : uint8_t { kNone = 0, kTsc = 1, kMonotonic = 2, kCounterAarch64 = 3 };
// Unit of raw GPU times: ns of the GPU's own clock, or ticks of AMD's wall_clock64.
enum class GpuClock : uint8_t { kUnknown = 0, kNvidiaNs = 1, kAmdTicks = 2 };
// How much is captured (docs/glossary.md); kSample is deep for some operations only.
enum class Mode : uint8_t { kOff = 0, kLite = 1, kDefault = 2, kDeep = 3, kSample = 4 };
// As LOCKSTEP_MODE spells it, without the numbers of a sample; "unknown" for one of a newer version.
constexpr const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::kOff:
      return "off";
    case Mode::kLite:
      return "lite";
    case Mode::kDefault:
      return "default";
    case Mode::kDeep:
      return "deep";
    case Mode::kSample:
      return "sample";
  }
  return "unknown";
}
// Names that users of rocm-trace-lite know these modes by.
inline constexpr char kDefaultAlias[] = "standard", kDeepAlias[] = "full";
// Orders modes by how much they record, which their numbers on disk do not. -1 for a mode of a
// newer version.
constexpr int mode_rank(Mode mode) {
  switch (mode) {
    case Mode::kOff:
      return 0;
    case Mode::kLite:
      return 1;
    case Mode::kDefault:
      return 2;
    case Mode::kSample:
      return 3;
    case Mode::kDeep:
      return 4;
  }
  return -1;
}
// kStream keeps everything up to a cap, kRing keeps the newest. The file of a ring holds only its header
// until a tool saves or adopts it, or its process ends.
enum class Retention : uint8_t { kStream = 1, kRing = 2 };
// Where a process is with its file. Whatever it says, records that are published are whole; docs/format.md
// says how a reader knows whether the process still lives.
enum class FileState : uint32_t {
  kBuilding = 0,  // header being filled; nothing else may be trusted
  kOpen = 1,      // capturing, or the process ended without closing
  kClosed = 2,    // closed in order: all that was recorded is here
  kDiskFull = 3,  // the last write found no room; what is here is whole
  kSizeCap = 4,   // capture stopped at the size cap
};
// What a chunk holds; the head of this page says whose each kind is.
enum class Purpose : uint8_t { kNone = 0, kMeta = 1, kDefs = 2, kRecords = 3, kHistogram = 4 };

// One instant on every clock of the host, taken within `width_ns`. `ticks` is the file's host clock, the
// others are ns. Readers place ticks between anchors; `width_ns` is the error that an anchor brings with it.
struct ClockAnchor {
  uint64_t ticks;
  int64_t monotonic_ns;  // CLOCK_MONOTONIC: stands still while the host sleeps
  int64_t boottime_ns;   // CLOCK_BOOTTIME: goes on
  int64_t realtime_ns;   // CLOCK_REALTIME: Unix time, which may be set in between
  uint32_t width_ns;     // CLOCK_MONOTONIC time that reading all of them took (best of several tries)
  uint32_t reserved;     // 0
};
static_assert(sizeof(ClockAnchor) == 40);

// Bytes 0..4095. Text fields are NUL-terminated and cut to fit. The capturing process writes everything once,
// before `state` becomes kOpen, except the words under "live".
//
// Of the live words a tool writes `control` and `request`, under flock(LOCK_EX) (format/control_words.h); the
// process writes all others. Each is aligned and is stored and loaded by itself, so a reader may see two of
// them from different moments. Nothing here is to be trusted: a crash may have left any FileState, and a file
// may be damaged or forged, so a reader checks every number against the bytes that are there.
struct FileHeader {
  unsigned char magic[8];  // kMagic
  uint16_t major, minor;   // kMajor and kMinor of who wrote it
  uint32_t header_bytes;   // kHeaderBytes
  uint32_t chunk_bytes;    // kChunkBytes
  uint32_t unit_bytes;     // kUnitBytes
  uint64_t features;       // optional feature bits; unknown ones are ignored
  // what and how
  Source source;
  HostClock host_clock;
  GpuClock gpu_clock;
  Mode mode;  // at the start; a later one is a ModeDef
  Retention retention;
  uint8_t reserved0[3];
  uint64_t tick_hz;       // host clock rate as known at start; 0: derive it from anchors
  uint64_t cap_bytes;     // stream: file size cap, 0 = none; ring: ring bytes
  uint32_t event_mask;    // NCCL activation mask asked for (bits of the newest API)
  uint32_t nccl_version;  // as ncclGetVersion gives it (22809); 0 unknown
  // who
  int32_t pid;                // as the process sees itself, in its own pid namespace
  uint32_t pid_namespace;     // inode of /proc/self/ns/pid; 0 unknown
  uint64_t start_ticks;       // process start: field 22 of /proc/self/stat (kernel clock ticks since boot)
  int64_t start_realtime_ns;  // the same as Unix time, computed at capture start
  // As the launcher's environment has them (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, ...); -1 unknown.
  int32_t rank, local_rank, world, local_world, node_rank, nodes;
  unsigned char boot_id[16];  // /proc/sys/kernel/random/boot_id, binary
  ClockAnchor first_anchor;
  char launcher[16];          // torchrun, slurm, openmpi, pmi, none: whose variables were found
  char job_id[64];            // the launcher's, as text
  char host[128];             // gethostname()
  char host_id[64];           // NCCL_HOSTID if set
  char visible_devices[256];  // CUDA_VISIBLE_DEVICES / HIP_VISIBLE_DEVICES, as set
  char tool_version[32];
  uint32_t process_tag;  // upper half of every context this process hands out
  uint32_t reserved2;
  uint32_t argv_bytes;        // bytes used in argv
  uint32_t argv_total_bytes;  // before cutting
  char argv[2048];  // NUL-separated; without secrets unless LOCKSTEP_ARGV says otherwise (since minor 6)
  // live
  alignas(64) uint32_t state;  // FileState
  uint32_t control;            // number of the request that a tool has stored; 0 = nothing asked
  uint64_t heartbeat_ticks;  // host clock, refreshed about once a second by the keeper thread, and at the end
  uint32_t chunks_claimed;   // chunks handed out so far (all chunks below it may be read)
  uint32_t chunks_ready;     // in a file as chunks_claimed; in memory also places that are prepared
  int64_t heartbeat_monotonic_ns;  // the same instant, for a reader on this host (since minor 1)
  int64_t heartbeat_realtime_ns;   // and for one on another
  uint32_t seal;                   // checksum of what is written once (since minor 4); 0 none
  uint32_t segment_descriptor;     // of a segment without a name, in its process (since minor 6); 0 none
  uint64_t sealed_ticks;  // what was stored before is covered by the chunks' seals (since minor 4); 0 nothing
  uint64_t reserved1;
  alignas(64) uint64_t losses[kLossKinds];  // losses of no particular thread; names in losses.def
  alignas(64) ControlRequest request;       // written by a tool (since minor 2): format/control_words.h
  alignas(64) ControlState in_force;        // and by the process, about it
  // Since minor 6.
  alignas(64) char segment[64];  // name of the process's segment (format/segment_layout.h); empty: none, or
                                 // no more
  uint64_t segment_key;          // that the segment repeats
  alignas(64) uint64_t more_losses[kAllLossKinds - kLossKinds];  // of the kinds from kLossKinds on
  uint32_t chunks_kept;  // chunks that the file holds, once it is whole; 0 unknown
};
static_assert(sizeof(FileHeader) <= kHeaderBytes);
static_assert(offsetof(FileHeader, state) % 64 == 0 && offsetof(FileHeader, request) % 64 == 0);
static_assert(offsetof(FileHeader, major) == 8 && offsetof(FileHeader, header_bytes) == 12);

// Checksums of a chunk (since minor 4), made from a copy: format/seal.h says of what, and what they prove. A
// chunk in memory has none: its thread fills it in without one.
struct ChunkSeal {
  uint32_t chunk_no;             // of the contents that it is of
  uint16_t units;                // it covers the entries before this unit; 0: no seal
  uint16_t header;               // of the fields of the chunk's header that do not change
  uint32_t entries;              // of what does not change of all entries
  uint16_t blocks[kSealBlocks];  // the same of those that begin in each block, the lower half of it
  uint32_t late;                 // of late fields, as they were
};
static_assert(sizeof(ChunkSeal) == 32);

// First 64 bytes of every chunk. The log's owner thread writes it (meta: who holds the session's lock), and
// the writer thread the seal of its copy. `magic` is stored last; a chunk without it was never published.
// `next` and `records` are filled in when the log moves on; `seal` is made for the copy in the file. In a
// ring a place holds one chunk after the other: `chunk_no` tells which, and a reader looks at it again after
// its records.
struct ChunkHeader {
  uint32_t magic;
  Purpose purpose;
  uint8_t reserved0;
  uint16_t log;       // 1 + slot of the thread log; 0 for meta
  uint32_t chunk_no;  // of this log and purpose
  // chunk index of the following chunk of this log and purpose, 0 = none yet (ring: oldest -> newest)
  uint32_t next;
  uint64_t claimed_ticks;  // when a thread took it, on the file's host clock
  uint32_t tid;            // kernel thread id at claim time
  uint32_t records;        // entries in it, known once it is full; 0 before
  ChunkSeal seal;
};
static_assert(sizeof(ChunkHeader) == 64);
inline constexpr uint32_t kChunkHeaderUnits = sizeof(ChunkHeader) / kUnitBytes;
// A reader that goes by units ends there, whatever the chunk holds.
inline constexpr uint32_t kLastUnit = kUnitsPerChunk - 1;  // kept free: it terminates a full chunk

// A handle as given to the host: which event, in which log, at which position. Never reused, never a pointer.
//   63     59 58           44 43                                   0
//   | kind:5 | log:15        | position:44 (16-byte units)          |
// 44 bits of position are 256 TiB of records for one log.
inline constexpr int kHandlePositionBits = 44;
inline constexpr int kHandleLogBits = 15;
// Nothing is checked: a handle comes back from the host, stale, foreign or random, and whoever takes one
// apart checks kind, log and position before use. No event has the handle 0: kinds and logs count from 1.
constexpr uint64_t make_handle(uint32_t kind, uint32_t log, uint64_t position) {
  return uint64_t{kind} << (kHandlePositionBits + kHandleLogBits) | uint64_t{log} << kHandlePositionBits |
         position;
}
constexpr uint32_t handle_kind(uint64_t h) {
  return static_cast<uint32_t>(h >> (kHandlePositionBits + kHandleLogBits));
}
constexpr uint32_t handle_log(uint64_t h) {
  return static_cast<uint32_t>(h >> kHandlePositionBits) & ((1u << kHandleLogBits) - 1);
}
constexpr uint64_t handle_position(uint64_t h) { return h & ((uint64_t{1} << kHandlePositionBits) - 1); }

// A context as given to the host: never a pointer. `process_tag` is random per process, so that a context
// that came from another process (PXN) is distinguished from our own without touching memory.
//   63               32 31           0
//   | process_tag       | 1 + comm   |
// Never 0: NCCL calls no finalize for a context that is NULL.
constexpr uint64_t make_context(uint32_t process_tag, uint32_t comm) {
  return uint64_t{process_tag} << 32 | (comm + 1);
}
// In records: no communicator, or one whose definition found no room.
inline constexpr uint32_t kNoComm = 0xffffffff;

// Where a chunk begins in the file, in bytes. `chunk` is its index there, which is not its `chunk_no`.
constexpr uint64_t chunk_offset(uint32_t chunk) { return kHeaderBytes + uint64_t{chunk} * kChunkBytes; }

}  // namespace lockstep::format
