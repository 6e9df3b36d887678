// SPDX-License-Identifier: Apache-2.0
// What NCCL_DEBUG logs say, put together: who spoke, about which communicators, over which connections, and
// every other remark once with where it stands. Plain data; nothing here is judged. All counts are bounded
// (the k...Most below); what did not fit is counted in `coverage`.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "readers/nccl_log/catalogue.h"

namespace lockstep::readers::nccl_log {

inline constexpr uint32_t kNobody = UINT32_MAX;

// Text from a log, fit for a terminal: valid UTF-8, and '?' for control characters other than a tab.
std::string printable(std::string_view text);

// A line that proves something. Text is printable and at most kEvidenceMost bytes.
struct Evidence {
  static constexpr size_t kEvidenceMost = 400;
  uint32_t file = 0;  // in LogModel::files
  uint64_t line = 0;  // from 1
  std::string text;
};

// What people describe in words of their own (symptoms.h).
enum class Symptom : uint8_t { kHang, kCrash, kTimeout, kWrongResults, kSlow, kFailure };

// How far a file can be believed.
struct FileState {
  uint64_t damaged_lines = 0, first_damaged = 0;  // the latter's number, from 1
  uint64_t torn = 0;                              // lines without a whole head, or with more than one
  bool has_holes = false;                         // bytes of zero
  bool is_open = false;                           // no newline ends it: it may go on elsewhere
  bool is_understood = false;                     // a line of it was
  uint64_t errors = 0;                            // lines that nobody here knows and that report an error
  std::vector<Evidence> first_errors;             // at most kErrorsMost
  std::optional<Symptom> symptom;                 // the first that somebody describes, near its beginning
  Evidence symptom_at;                            // where
  static constexpr size_t kErrorsMost = 3;
  bool is_damaged() const { return damaged_lines > 0 || has_holes; }
};

struct LogProcess {
  std::string host;  // empty: lines that name no process
  int64_t pid = 0;
  uint32_t file = 0;
  int32_t rank = -1;  // in its largest communicator, else as the launcher's mark says; -1: not said
  uint64_t lines = 0, warnings = 0;
};

// A remark: kind and values as lines.def names them, once for each process that made it.
struct Fact {
  LineKind kind = LineKind::kUnknown;
  uint32_t process = kNobody;  // kNobody: a line without a head
  bool is_warning = false;     // one of them came at level WARN
  bool is_torn = false;  // all came in lines that another was written into: words of that may stand behind
  std::vector<std::string> values;
  Evidence first;
  uint64_t count = 0;

  std::string value(size_t i) const { return i < values.size() ? values[i] : std::string(); }
};

// A rank's neighbours in one channel. -1 in a tree: none.
struct ChannelPosition {
  static constexpr int32_t kUnknown = -2;
  int32_t ring_before = kUnknown, ring_behind = kUnknown, tree_up = kUnknown;
  std::array<int32_t, 3> tree_down = {-1, -1, -1};
};

// A collective as one rank called it: what (in LogModel::call_shapes), the line that says so, and NCCL's
// number, which all calls of a group share.
struct Call {
  uint32_t shape = 0, line = 0, number = 0;
};

// One process' part in a communicator.
struct CommPart {
  uint32_t process = 0;
  int64_t tid = 0;
  uint64_t pointer = 0;
  int32_t rank = -1, ranks = -1, nodes = -1, local_ranks = -1;
  int32_t local_rank = -1;  // among those of its node
  int32_t device = -1, nvml_device = -1;
  uint64_t bus_id = 0;
  std::string group;  // equal for the parts of one communicator; empty: unknown
  bool started = false, completed = false, aborted = false, ended = false;
  bool is_used =
      false;  // something was made of it or called on it, so it was completed, whatever the log lacks
  int32_t coll_channels = -1, p2p_channels = -1, nvls_channels = -1, rings = -1, trees = -1;  // -1: not said
  int32_t peer_channels = -1;  // of p2p_channels, for one peer; likewise
  bool has_mnnvl = false;      // NVLink between its hosts
  bool is_orphan = false;      // part of another one, of which the log does not say
  double init_seconds = -1;
  Evidence first, abort, time;               // where it was named, that it was aborted, and how long it took
  std::vector<ChannelPosition> positions;    // by channel
  std::vector<std::vector<int32_t>> orders;  // ring by channel, as rank 0 reports; empty: unknown, or cut
  std::vector<Call> calls;                   // collectives in order, without sends and receives
  uint64_t first_call = 0;                   // NCCL's number of the first of them
};

enum class Transport : uint8_t { kP2p, kShm, kNet, kOther };
std::string_view transport_text(Transport transport);  // "P2P"

// The channels from one rank to another that a process reported, in one way.
struct Connection {
  static constexpr size_t kLanesMost = 128;
  uint32_t process = 0;
  uint32_t comm = kNobody;  // in LogModel::comms; kNobody: more than one would do
  int32_t from = -1, to = -1;
  std::string from_device, to_device;  // as printed: NVML index, or bus id before 2.18
  Transport transport = Transport::kOther;
  std::string via;   // "P2P/CUMEM", "NET/IB/0"
  bool gdr = false;  // the network card reads and writes GPU memory
  bool is_receive = false;
  int32_t card = -1, proxy = -1;  // network card, and the rank that serves it where that is another (PXN)
  uint64_t channels = 0;
  std::bitset<kLanesMost> lanes;  // of connection 0, by channel
  Evidence first;
};

struct Path {
  std::string kind;  // "NVL", "PIX", ..., as printed
  double gbps = 0;   // GB/s
};
// A GPU or network card of one host as NCCL sees it; -1: not said.
struct TopologyDevice {
  std::string host, name;  // "GPU/0-1b000", "NET/0-3"
  double pci_gbps = -1, nvlink_gbps = -1, net_gbps = -1;
  bool has_xgmi = false;  // nvlink_gbps is of AMD's links
  std::map<std::string, Path> paths;
  Evidence first, paths_at;
};

// How collectives of one function were run, by the process that decides.
struct AlgorithmUse {
  uint64_t count = 0, least_bytes = 0, most_bytes = 0;
};

// How long the ranks of one host were in collectives of one function, as RCCL's latency profiler has it.
struct LatencySpread {
  uint64_t count = 0, uneven = 0;    // the latter: the longest was at least kUnevenFactor times the shortest
  double least_us = 0, most_us = 0;  // of `widest`, whose ranks differed most
  Evidence widest;
  static constexpr double kUnevenFactor = 2, kUnevenUs = 100;
};

// What a line of PyTorch or of its launcher says (torch_lines.h).
enum class TorchRemark : uint8_t {
  kTimeout,        // an operation did not end in time: op, seq, in, out, shape, milliseconds
  kProgress,       // how far the rank had come in a group: enqueued, completed, seq of the work that failed
  kError,          // NCCL or CUDA failed: text
  kSignal,         // reports that another rank's time was up: other_rank where it is named
  kTakenDown,      // the process ends itself: a consequence
  kWatchdogStuck,  // the watchdog itself stood still: milliseconds
  kLockHeld,       // Python's lock (GIL) was not to be had
  kCalledAt,       // where the operation that failed was called: text
  kGroup,          // a group was made: size
  kMismatch,     // two ranks of a group call different things: group_rank and other_rank, seq, op, other_seq,
                 // text
  kAnnounced,    // what a rank is about to call, of all its lines the one with the highest number: seq, op
  kNeverJoined,  // desync report: ranks that joined nothing
  kNotJoined,    // desync report: ranks that have not joined seq
  kNotFinished,  // desync report: ranks that joined seq and have not finished it
  kStarted,      // desync report: ranks that began seq as op, or ended it
  kFinished,
  kExit,    // the launcher says that the process ended: exit_code
  kRaised,  // the program ended itself by an exception that did not follow from another rank's end: text
  kPointToPoint,  // the group is used for sends and receives too, which its counts then mix
};
struct TorchLine {
  static constexpr int64_t kUnknown = INT64_MIN;
  static constexpr int32_t kNoCode = INT32_MIN;

  TorchRemark remark{};
  int32_t rank = -1, group_rank = -1;  // of the job, in the group; -1: not said
  int32_t other_rank = -1, size = -1;
  std::string group, description;  // as PyTorch names it; empty: not said
  std::string op, func;            // OpType as printed, and NCCL's name of it
  std::string shape, text;
  int64_t seq = -1, in = -1, out = -1, milliseconds = -1;
  int64_t other_seq = -1;                             // of other_rank, which calls `text`
  int64_t enqueued = kUnknown, completed = kUnknown;  // -1: nothing yet
  int32_t exit_code = 0;                              // kNoCode: the launcher's report breaks off before it
  int64_t ended_s = kUnknown;                         // when, on the clock of the launcher's host
  bool is_first_end = false;                          // the launcher calls it the first that it saw
  std::vector<int32_t> ranks;
  Evidence first;
};

struct UnknownShape {
  uint64_t count = 0;
  bool is_warning = false;
  Evidence first;
};

struct LogCoverage {
  uint64_t bytes = 0, lines = 0, headed = 0, known = 0;
  uint64_t torn = 0, cut_lines = 0, cut_bytes = 0;
  uint64_t repeated = 0;    // lines that a launcher left out and counted
  uint64_t beyond = 0;      // remarks, processes, communicators or connections beyond a limit
  uint64_t zero_bytes = 0;  // in holes of files: two processes wrote into one
};

struct LogModel {
  static constexpr size_t kProcessesMost = 1 << 16, kCommsMost = 1 << 20, kConnectionsMost = 1 << 20;
  static constexpr size_t kFactsMost = 1 << 20, kFactsOfKindMost = 64;  // the latter for each process
  static constexpr size_t kTorchLinesMost = 1 << 17;                    // a few for each rank
  static constexpr size_t kValueMost = 256, kShapesMost = 200;
  static constexpr size_t kPositionsMost = 1 << 21, kOrdersMost = 1 << 22;  // of all communicators together
  static constexpr size_t kCallsMost = 1 << 23, kCallShapesMost = 1 << 16;
  static constexpr size_t kDevicesMost = 1 << 16, kPathsMost = 1 << 20;

  std::vector<std::string> files;
  std::vector<FileState> states;  // of those
  std::vector<LogProcess> processes;
  std::vector<CommPart> comms;
  std::vector<Connection> connections;
  std::vector<Fact> facts;
  std::array<std::vector<uint32_t>, kLineKinds> facts_of_kind;
  std::vector<TopologyDevice> topology;
  std::vector<std::string> call_shapes;
  std::vector<TorchLine> torch;                    // in the order of files and lines
  std::map<std::string, AlgorithmUse> algorithms;  // "AllReduce RING SIMPLE"
  std::map<std::string, LatencySpread> latencies;  // by function
  std::map<std::string, UnknownShape> unknown;     // by their first words
  uint64_t collectives = 0;                        // lines, one for each call and rank
  LogCoverage coverage;

  // Not one line of NCCL, PyTorch, a program's failure or a launcher was understood.
  bool is_silent() const {
    for (const FileState& state : states) {
      if (state.is_understood) return false;
    }
    return true;
  }
  const std::vector<uint32_t>& of(LineKind kind) const { return facts_of_kind[static_cast<size_t>(kind)]; }
};

// What a fact of kEnvironment names: NCCL's variables are there without their prefix.
inline std::string variable_name(const std::string& name) {
  return name.starts_with("RCCL_") || name.starts_with("HSA_") ? name : "NCCL_" + name;
}

}  // namespace lockstep::readers::nccl_log
