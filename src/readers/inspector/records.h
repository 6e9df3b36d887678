// SPDX-License-Identifier: Apache-2.0
// What a file of NVIDIA Inspector holds: one JSON object a line, each an operation that had ended. Inspector
// writes what its dump thread finds, so operations are missing, and those that never ended are not there at
// all. Up to v4.2 each line says whose it is; from v4.3 a marker says so for as many lines behind it as it
// counts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "readers/common/json_lines.h"

namespace lockstep::readers::inspector {

// A communicator as one process sees it.
struct CommHeader {
  uint64_t id = 0;   // NCCL's commId
  std::string name;  // empty unknown
  int32_t rank = -1, ranks = -1, nodes = -1;
};

// What kind of operation. Algorithm and protocol: from v4.2; empty unknown.
struct WorkShape {
  std::string func, algo, proto;
  bool operator==(const WorkShape&) const = default;
};

struct Record {
  uint32_t comm = 0;   // of ProcessRecords::comms
  uint32_t shape = 0;  // of ProcessRecords::shapes
  bool is_p2p = false;
  bool gpu_timed = false;   // the duration is the GPU's: of the channel that took longest, in whole us
  int32_t peer = -1;        // P2P: rank in the communicator
  uint32_t seq = 0;         // collectives: NCCL's number per function; P2P: this process' own, from 1
  uint64_t bytes = 0;       // count x element size, as NCCL's profiler interface gives them; 0 unknown
  int64_t duration_ns = 0;  // 0: less than a us, or unknown
  int64_t ended_ns = 0;     // it had ended by then: host's clock, ns since the Unix epoch
  int64_t enqueued_ns = 0;  // verbose files alone; 0 unknown
};

struct ProcessRecords {
  std::string host;
  int64_t pid = -1;
  size_t alike = 0;  // processes before it that have its host name and pid, and are others
  std::vector<CommHeader> comms;
  std::vector<WorkShape> shapes;
  std::vector<Record> records;  // in the order of the file
};

struct FileRecords : common::LineLosses {
  std::string path;
  std::vector<ProcessRecords> processes;  // one, unless files were put together
  uint64_t left_out = 0;                  // records beyond what is kept of a file
  uint64_t without_size = 0;              // of a type whose size Inspector did not know
  uint64_t without_owner = 0;             // v4.3: lines whose marker is not there
  uint64_t overwritten = 0;               // by Inspector's own count: gone before they were written
  uint64_t proxy_records = 0;             // transfers, which are not read
  std::string newer_version;              // a format version that is not known; empty: none
};

// The error says that the file cannot be read, or holds no record at all, and then why: it is of a newer
// format than this reader knows, or nothing was written in time.
Result<FileRecords> read_file(const std::string& path);

}  // namespace lockstep::readers::inspector
