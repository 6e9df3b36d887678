// SPDX-License-Identifier: Apache-2.0
// A run seen across its processes: what the analyses read. job/gather fills it, one process after the other
// or several at once; job/match numbers the operations so that equal numbers are one operation on all ranks;
// job/clock says how the hosts' clocks stand to each other. After that it is only read.
//
// Operations stay with their process, as columns. Within a process they are sorted so that those of one
// communicator, and the point-to-point operations of one communicator, peer and direction, lie together, in
// the order in which they were called. So one operation on all ranks is found by arithmetic: see op_at.
//
// Times are RunNs (see trace.h) of the process' own host; common_ns() brings them to the reference host.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/column_memory.h"
#include "model/event_kind.h"
#include "model/host_clock.h"
#include "model/names/who.h"
#include "model/time_histogram.h"
#include "model/trace.h"

namespace lockstep::model {

// What an operation is, interned over the job.
struct Signature {
  StringId func = 0, datatype = 0, algo = 0, proto = 0;
  int32_t root = 0;
  uint8_t kind = 0;      // EventKind
  uint8_t channels = 0;  // 0 unknown
  uint64_t count = 0, bytes = 0;
  bool operator==(const Signature&) const = default;
};

// The operations of one process. All columns have the same length, but for the last, which may be empty.
struct JobOps {
  Column<uint32_t> signature;
  Column<uint32_t>
      index;  // number on the communicator (P2P: between the pair), equal on all ranks once matched
  Column<uint32_t> seq;  // NCCL's number per communicator and function; kNoIndex unknown
  Column<int64_t> called_ns, enqueued_ns, launched_ns, gpu_start_ns, gpu_end_ns;  // 0 unknown or never
  Column<int32_t> gpu_error_ns;                                                   // half-width; -1 unknown
  Column<uint8_t> flags;
  Column<uint8_t> gpu_source;       // GpuTimeSource
  Column<uint64_t> torch_comms_id;  // 0 not known; empty where no operation of the process has one
  Column<StringId> place;           // where the program called it; likewise
  // What was entered since then reports that its GPU work begins, when it does. The rest has GPU times once
  // it is over, and some time later, or never: without them it may run, or have ended.
  static constexpr int64_t kNeverReported = INT64_MAX;
  int64_t gpu_reported_from_ns = 0;

  size_t size() const { return signature.size(); }
  // A replay of a captured graph. It was called once, when the graph was captured; each time it runs, it is
  // enqueued by the host's callback that lets it go, in the order of its stream. The launch of the graph
  // before that is not seen.
  bool is_replay(size_t i) const { return (flags[i] & kFlagGraphCaptured) != 0 && enqueued_ns[i] != 0; }
  // The earliest time at which the rank was certainly not yet past the operation's entry; 0 unknown. Of a
  // replay that is no more its call: a rank has not been in an operation since its graph was captured, and
  // does not call others in that order.
  int64_t entered_ns(size_t i) const {
    if (called_ns[i] != 0 && !is_replay(i)) return called_ns[i];
    return enqueued_ns[i] != 0 ? enqueued_ns[i] : launched_ns[i];
  }
  uint64_t comms_id(size_t i) const { return torch_comms_id.empty() ? 0 : torch_comms_id[i]; }
  StringId place_of(size_t i) const { return place.empty() ? 0 : place[i]; }
  bool is_start_reported(size_t i) const { return entered_ns(i) >= gpu_reported_from_ns; }
  // When it began on the GPU is known, not only how long it took.
  bool is_placed(size_t i) const {
    return gpu_start_ns[i] != 0 && gpu_source[i] < static_cast<uint8_t>(GpuTimeSource::kInspector);
  }
};

// One end of a point-to-point stream: the operations of one process with one peer in one direction.
struct Lane {
  int32_t peer = -1;  // rank in the communicator
  bool is_send = false;
  uint32_t first = 0, ops = 0;  // in the process' JobOps
};

// One communicator as one process sees it: the unit in which the analyses compare ranks.
struct Member {
  uint32_t process = 0;
  uint32_t comm = 0;  // of Job::comms
  int32_t rank = -1;  // in the communicator
  int64_t init_ns = 0, end_ns = 0;
  uint32_t first = 0, ops = 0;  // collectives, in the process' JobOps, by index
  std::vector<Lane> lanes;      // by (peer, is_send)
  bool numbered = false;        // its source says that `index` of the collectives is equal on all members
  // Its source counted all operations and kept some: `index` counts from the first call on, and jumps where
  // those between are not here; also in lanes.
  bool counted = false;
  // How `index` of the collectives came to be comparable with the other members'.
  enum class Alignment : uint8_t {
    kFromStart,  // everything since the communicator began was kept, or counted
    kBySeq,      // NCCL's numbers agree with another member's, or its source numbered all members
    kNone,       // older operations are gone and nothing shows how many
  } alignment = Alignment::kFromStart;
};

// A communicator, or a declared group, seen across its members: those with one comm id and size.
struct JobComm {
  uint64_t comm_id = 0;  // 0 unknown: such a communicator has one member
  StringId name = 0;     // may be empty
  int32_t ranks = -1, nodes = -1;
  bool declared = false;           // through lockstep.h
  std::vector<uint32_t> members;   // by rank in it, rows of Job::members; kNoRow: not in the run
  std::vector<uint32_t> unranked;  // members whose rank is unknown
};

// What a process was in the middle of when its record ends.
struct OpenCall {
  uint8_t kind = 0;          // EventKind
  uint32_t member = kNoRow;  // of Job::members
  StringId func = 0;
  int64_t start_ns = 0;
};
// What an open transfer waits for. kPosted: nothing was reported since it began.
enum class StepWait : uint8_t { kGpu, kPeer, kSend, kReceive, kFlush, kPosted };
// A transfer that had begun and not ended; `since_ns` is when its wait began.
struct OpenStep {
  uint32_t member = kNoRow;
  int32_t peer = -1;
  uint16_t channel = 0;
  bool is_send = false;
  StepWait wait = StepWait::kPosted;
  int32_t step = 0, steps = 0;  // of the proxy operation; steps -1 unknown
  int64_t since_ns = 0;
};

// What the network plugin said of itself, where it did.
enum class NetTransport : uint8_t { kUnknown, kIb, kSocket };

// What transfers belong to, as far as it decides how fast they can go: the operation's pattern, how many of
// them follow one another, and how large they are. Transfers of one lane overlap within an operation, and not
// beyond it.
struct Traffic {
  uint8_t kind = 0;  // EventKind: Coll, P2p, ...; 0 unknown: nothing shows what it may be compared with
  StringId func = 0, algo = 0, proto = 0;  // of a collective
  uint8_t channels = 0;                    // of the operation; 0 unknown
  uint8_t transfers = 0, size = 0;  // octaves: of an operation on one lane, and the mean of their bytes
  auto operator<=>(const Traffic&) const = default;
};

// Transfers of a lane in the order in which they came, as equally many in each of so many parts: how its rate
// differs over time.
inline constexpr size_t kRateParts = 8;
struct RatePart {
  uint64_t bytes = 0;
  int64_t busy_ns = 0;
};
using RateParts = std::array<RatePart, kRateParts>;

// Network transfers of one process with one peer over one channel, summed.
struct NetPair {
  uint32_t member = kNoRow;
  int32_t peer = -1;
  uint16_t channel = 0;
  bool is_send = false;
  Traffic traffic{};
  int32_t device = -1;  // network device; -1 unknown
  NetTransport transport = NetTransport::kUnknown;
  uint64_t steps = 0, bytes = 0;
  int64_t gpu_ns = 0;       // send: waiting for the GPU's data; receive: for the GPU to take it
  int64_t peer_ns = 0;      // send: waiting for the peer's buffer
  int64_t wire_ns = 0;      // send: handed over until done; receive: posted until received
  int64_t flush_ns = 0;     // receive
  int64_t busy_ns = 0;      // time in which at least one of the transfers of wire_ns went on
  double wire_squares = 0;  // sum of their squared durations, ns^2
  TimeHistogram wire{};     // of those durations
  RateParts parts{};
  int64_t first_ns = 0, last_ns = 0;
};

// What the GPUs of a process did in one of its steps, from its kernels. Each time counts the instants at
// which at least one such kernel ran, summed over the devices.
struct GpuStep {
  int64_t number = -1;  // as the program calls it; -1: it has no steps, and this is all of its time
  int64_t begin_ns = 0, end_ns = 0;
  bool is_whole = false;  // false: no other step began; it ends with the GPU's work
  uint32_t devices = 1;
  int64_t computing_ns = 0;
  int64_t communicating_ns = 0;
  int64_t exposed_ns = 0;  // of that, while nothing computed
  int64_t copying_ns = 0;  // while nothing else ran
  int64_t length_ns() const { return end_ns - begin_ns; }
  int64_t idle_ns() const { return devices * length_ns() - computing_ns - exposed_ns - copying_ns; }
};
// Kernels of one function of a communicator over the life of a process, each counted for itself.
struct ExposedFunc {
  uint32_t member = kNoRow;
  StringId func = 0;
  int64_t communicating_ns = 0, exposed_ns = 0;
};

// Copies between a GPU and host memory that is not pinned, from the first kernel of the process that
// communicates to the last. Times are summed over the devices.
struct PageableCopies {
  uint64_t copies = 0, bytes = 0;  // bytes 0: unknown
  int64_t busy_ns = 0;             // in which at least one ran
  int64_t alone_ns = 0;            // of that, while no kernel ran
  int64_t usual_ns = 0;            // alone_ns if all eighths of the time were as their median
  int64_t length_ns = 0;
};

// Whether the process still lives, as this host can tell at the moment in which its file was read.
enum class Liveness : uint8_t {
  kUnknown,  // nobody looked: another host, another boot, or files alone
  kRunning,
  kStopped,  // SIGSTOP or a debugger
  kGone,
};

// One process of the run. Times are ns on its own host's clock; a list that may be empty says what that
// means.
struct JobProcess {
  Process row;        // its texts are ids of Job::strings
  uint32_t host = 0;  // of Job::hosts
  Liveness liveness = Liveness::kUnknown;
  bool beats = false;  // nobody could look, but its heartbeat was of the moment in which its file was read
  std::vector<uint32_t> members;  // rows of Job::members
  std::vector<OpenCall> open_calls;
  std::vector<OpenStep> open_steps;  // the oldest of each (communicator, peer, channel, direction)
  std::vector<NetPair> net_pairs;
  std::vector<Mark> marks;           // steps alone
  std::vector<GpuStep> gpu_steps;    // in order of time; none: its kernels are not known
  std::vector<ExposedFunc> exposed;  // likewise
  PageableCopies pageable;
  uint64_t kernels = 0;  // that its GPUs ran, as far as recorded
  uint64_t lost =
      0;  // events, or pieces of files, that capture or reading lost; not what they merely guessed
  uint64_t holes =
      0;  // of them, those that need not be older than all that is left, as what a ring overwrites is
  bool graphs = false;         // some operations are replays of a CUDA graph
  bool drives_others = false;  // some of its network operations are those of other processes (PXN)
  JobOps ops;
};

// A clock: one boot of one host.
struct JobHost {
  StringId name = 0, boot_id = 0;
  HostClock clock;
  uint32_t contradictions = 0;  // spans of time in which no offset satisfies the operations
  // What the operations alone prove against the first host of the same boot, whose clock is this one's: a
  // check, which holds 0. Unknown for that first host, and where nothing is proven.
  HostClock measured{};
};

// Built once by the rooms of job/, then read by any number of threads. All StringIds are of `strings`, all
// rows of the vectors here. It owns no trace: a process is gone from memory once its columns are gathered.
struct Job {
  StringPool strings;
  std::vector<JobProcess> processes;  // in the order of the source
  std::vector<JobHost> hosts;         // the first is the reference
  std::vector<JobComm> comms;
  std::vector<Member> members;
  std::vector<Signature> signatures;
  LossTable losses;             // stage, kind and detail are ids of Job::strings
  int32_t expected_ranks = -1;  // the largest world size that a launcher named; -1 unknown
  // Where another tool wrote what it was read from: what people call its files, and what a user sets so that
  // each rank leaves one (empty: no setting does). Both empty: capture of our own.
  std::string files, setting;

  const JobOps& ops(const Member& member) const { return processes[member.process].ops; }
  std::string_view text(StringId id) const { return strings[id]; }

  // Position in the process' JobOps of the collective that has this index; nothing if the member has not
  // called it or no longer has it.
  std::optional<uint32_t> op_at(const Member& member, uint32_t index) const {
    return op_at(ops(member), member.first, member.ops, index);
  }
  // Likewise of a lane of the member.
  std::optional<uint32_t> op_at(const Member& member, const Lane& lane, uint32_t index) const {
    return op_at(ops(member), lane.first, lane.ops, index);
  }
  // The first of `count` operations from `first` on that has this index or a higher one; first + count: none.
  static uint32_t op_from(const JobOps& ops, uint32_t first, uint32_t count, uint32_t index);
  // One past the index of the member's newest collective; 0 none.
  uint32_t next_index(const Member& member) const {
    return next_index(ops(member), member.first, member.ops);
  }
  // Operations that the member has called on a lane.
  uint32_t next_index(const Member& member, const Lane& lane) const {
    return next_index(ops(member), lane.first, lane.ops);
  }
  // The oldest index that is still there, as a ring loses older ones; next_index() if none.
  uint32_t oldest_index(const Member& member) const;

  struct CommonTime {
    int64_t ns;
    int64_t half_width_ns;
  };
  // A time of a process on the reference host's clock; nothing while the host's clock is not aligned.
  std::optional<CommonTime> common_ns(uint32_t process, int64_t ns) const;

  // Any process' GPU is AMD's, as far as anything shows.
  bool has_amd_gpus() const;
  // See who.h.
  Who who(uint32_t process) const {
    Who who = model::who(processes[process].row, strings);
    who.gone = who.gone || processes[process].liveness == Liveness::kGone;
    return who;
  }
  std::string process_name(uint32_t process) const { return who(process).name(); }
  // Its name, else its id in hex, else "?".
  std::string comm_name(uint32_t comm) const;

 private:
  static std::optional<uint32_t> op_at(const JobOps& ops, uint32_t first, uint32_t count, uint32_t index);
  static uint32_t next_index(const JobOps& ops, uint32_t first, uint32_t count) {
    return count == 0 ? 0 : ops.index[first + count - 1] + 1;
  }
};

}  // namespace lockstep::model
