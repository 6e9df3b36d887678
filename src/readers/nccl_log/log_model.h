// SPDX-License-Identifier: Apache-2.0
// What NCCL_DEBUG logs say, put together: who spoke, about which communicators, over which connections, and every other
// remark once with where it stands. Plain data; nothing here is judged. All counts are bounded (the k...Most below); what
// did not fit is counted in `coverage`.
#pragma once
#include <array>
#include <cstdint>
#include <map>
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

struct LogProcess {
  std::string host;
  int64_t pid = 0;
  uint32_t file = 0;
  int32_t rank = -1;  // in its largest communicator, else as the launcher's mark says; -1: not said
  uint64_t lines = 0, warnings = 0;
};

// A remark: kind and values as lines.def names them, once for each process that made it.
struct Fact {
  LineKind kind = LineKind::kUnknown;
  uint32_t process = kNobody;  // kNobody: a framework's line
  bool is_warning = false;     // one of them came at level WARN
  std::vector<std::string> values;
  Evidence first;
  uint64_t count = 0;

  std::string value(size_t i) const { return i < values.size() ? values[i] : std::string(); }
};

// One process' part in a communicator.
struct CommPart {
  uint32_t process = 0;
  int64_t tid = 0;
  uint64_t pointer = 0;
  int32_t rank = -1, ranks = -1, nodes = -1, local_ranks = -1;
  int32_t device = -1;
  uint64_t bus_id = 0;
  std::string group;  // equal for the parts of one communicator; empty: not told
  bool started = false, completed = false, aborted = false, ended = false;
  int32_t coll_channels = -1, rings = -1, trees = -1;  // -1: not said
  double init_seconds = -1;
  Evidence first, abort;  // where it was told of, and that it was aborted
};

enum class Transport : uint8_t { kP2p, kShm, kNet, kOther };
std::string_view transport_text(Transport transport);  // "P2P"

// The channels from one rank to another that a process told of, in one way.
struct Connection {
  uint32_t process = 0;
  int32_t from = -1, to = -1;
  std::string from_device, to_device;  // as printed: NVML index, or bus id before 2.18
  Transport transport = Transport::kOther;
  std::string via;   // "P2P/CUMEM", "NET/IB/0"
  bool gdr = false;  // the network card reads and writes GPU memory
  bool is_receive = false;
  uint64_t channels = 0;
  Evidence first;
};

// How collectives of one function were run, by the process that decides.
struct AlgorithmUse {
  uint64_t count = 0, least_bytes = 0, most_bytes = 0;
};

struct UnknownShape {
  uint64_t count = 0;
  bool is_warning = false;
  Evidence first;
};

struct LogCoverage {
  uint64_t bytes = 0, lines = 0, headed = 0, known = 0;
  uint64_t torn = 0, cut_lines = 0, cut_bytes = 0;
  uint64_t repeated = 0;  // lines that a launcher left out and counted
  uint64_t beyond = 0;    // remarks, processes, communicators or connections beyond a limit
};

struct LogModel {
  static constexpr size_t kProcessesMost = 1 << 16, kCommsMost = 1 << 20, kConnectionsMost = 1 << 20;
  static constexpr size_t kFactsMost = 1 << 20, kFactsOfKindMost = 64;  // the latter for each process
  static constexpr size_t kFrameworkFactsMost = 1 << 17;                // of a kind: a few for each rank
  static constexpr size_t kValueMost = 256, kShapesMost = 200;

  std::vector<std::string> files;
  std::vector<LogProcess> processes;
  std::vector<CommPart> comms;
  std::vector<Connection> connections;
  std::vector<Fact> facts;
  std::array<std::vector<uint32_t>, kLineKinds> facts_of_kind;
  std::map<std::string, AlgorithmUse> algorithms;  // "AllReduce RING SIMPLE"
  std::map<std::string, UnknownShape> unknown;     // by their first words
  uint64_t collectives = 0;                        // lines, one for each call and rank
  LogCoverage coverage;

  const std::vector<uint32_t>& of(LineKind kind) const { return facts_of_kind[static_cast<size_t>(kind)]; }
};

}  // namespace lockstep::readers::nccl_log
