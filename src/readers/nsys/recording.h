// SPDX-License-Identifier: Apache-2.0
// What an export of Nsight Systems says of communication: NCCL's own ranges (NVTX domain "NCCL") with what
// their payloads say, and the kernels and copies of CUPTI, by process. Times are ns since the Unix epoch
// where the export says when its session began, else since then.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "readers/nsys/tables.h"

namespace lockstep::readers::nsys {

// A range of NCCL's. What its payload does not say is as below.
struct NcclRange {
  int64_t start_ns = 0, end_ns = 0;  // end 0: never
  uint32_t tid = 0;
  std::string_view func;  // without "nccl": "AllReduce", "GroupEnd"; of Export::names
  uint64_t comm = 0;      // NCCL's communicator id; 0 unknown: before 2.25 payloads lack it
  uint64_t bytes = 0;     // of one message, as NCCL counts it
  int32_t root = -1, peer = -1;
  int32_t rank = -1, ranks = -1, device = -1;  // of what makes a communicator
  bool has_bytes = false;
};

// A kernel or a copy as CUPTI saw it. `correlation` ties it to its LaunchCall; `graph` 0: of no graph.
struct GpuWork {
  int64_t start_ns = 0, end_ns = 0;
  uint64_t name = 0;  // of Export::texts; copies: 0
  uint64_t graph = 0;
  uint64_t stream = 0, bytes = 0;
  uint32_t correlation = 0, device = 0, blocks = 0;
  bool is_copy = false;
};

// A call of the runtime or the driver, on the host.
struct LaunchCall {
  int64_t start_ns = 0, end_ns = 0;
  uint32_t correlation = 0, tid = 0;
};

struct ExportedProcess {
  int64_t pid = 0;
  std::vector<NcclRange> ranges;     // in order of time
  std::vector<GpuWork> work;         // in order of time
  std::vector<LaunchCall> launches;  // of communication kernels
};

// As the host's list of GPUs names it; empty: it does not say.
struct ExportedGpu {
  std::string name, pci, uuid;
};

struct Export {
  std::string path, host;
  bool has_epoch = false;
  std::map<int64_t, ExportedProcess> processes;     // by number; only such as communicate or work on a GPU
  std::unordered_map<uint64_t, std::string> texts;  // names of kernels
  std::map<std::string, std::string, std::less<>> names;     // functions, as ranges point into them
  std::map<std::pair<int64_t, uint32_t>, ExportedGpu> gpus;  // by process and device
  uint64_t bad_rows = 0, left_out = 0;
  uint64_t unknown_payloads = 0;  // of NCCL's ranges, whose layout is unknown
  std::string damage;             // why a table ended before its end; empty: none did
  std::string schema;             // its version, as it says; empty
};

// The error says what the export is not, or that it is of a newer layout.
Result<Export> read_export(Tables& tables);

}  // namespace lockstep::readers::nsys
