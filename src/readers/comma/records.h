// SPDX-License-Identifier: Apache-2.0
// What a latency file of CoMMA holds: one JSON object a line, an operation or a network operation. Times are
// ns.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "readers/common/json_lines.h"

namespace lockstep::readers::comma {

// One transfer. `step`: its number within the network operation.
struct Step {
  int32_t step = 0;
  uint64_t bytes = 0;
  // On a clock of the steps' own in the file; NetworkOp's once read_file has brought them together.
  int64_t start_ns = 0;
  int64_t ready_ns = 0;  // send: the peer had room; 0 unknown
  int64_t end_ns = 0;
};

// What the network did for one operation over one channel with one peer.
struct NetworkOp {
  int32_t peer = -1, rank = -1;  // in the communicator
  int64_t pid = -1;              // of the process it works for
  uint16_t channel = 0;
  bool is_send = false;
  int32_t steps = 0, chunk_bytes = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;  // 0: it had not ended
  std::vector<Step> transfers;
};

// A communicator as one process sees it. CoMMA does not tell how many ranks it has.
struct CommMember {
  uint64_t id = 0;
  int32_t rank = -1;
};

// As its host enqueued it. Times are on the clock that FileRecords::is_epoch names.
struct Operation {
  uint32_t comm = 0;  // of FileRecords::comms
  bool is_p2p = false;
  bool ended = true;             // false: CoMMA gave it up before it ended
  std::string_view func;         // "AllReduce"; static
  std::string_view algo, proto;  // NCCL's spelling; empty unknown; static
  int32_t peer = -1;
  uint32_t seq = 0;  // collectives: NCCL's number per function
  uint8_t channels = 0;
  uint64_t bytes = 0;
  int64_t enqueued_ns = 0;
  int64_t network_start_ns = 0, network_end_ns = 0;  // first transfer begun, last ended; 0 unknown
  int64_t seen_ns = 0;                               // the latest time in the line
  std::vector<NetworkOp> network;
};

struct FileRecords : common::LineLosses {
  std::string path;
  int64_t pid = -1;  // of a network operation, else the last number of the file's name
  std::vector<CommMember> comms;
  std::vector<Operation> operations;  // in the order of the file
  std::vector<NetworkOp> unplaced;    // network operations whose operation is unknown
  bool is_epoch = false;              // times are ns since the Unix epoch; else since the process' own start
  bool steps_aligned = true;          // one offset brings the steps into their operations
  uint64_t groups = 0;                // lines on groups of calls, of which nothing is kept
  uint64_t left_out = 0;              // beyond what is kept of a file
};

// The error says that the file cannot be read, or holds no record at all.
Result<FileRecords> read_file(const std::string& path);

}  // namespace lockstep::readers::comma
