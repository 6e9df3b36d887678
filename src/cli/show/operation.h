// SPDX-License-Identifier: Apache-2.0
// One operation on all the ranks of its communicator, as `show` prints it; and the list to choose from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/show/event_tree.h"
#include "model/job.h"
#include "model/trace_source.h"

namespace lockstep::cli::show {

// "12", "coll:12" or "p2p:3": a collective's number on its communicator, the same on all ranks; or of the sends and receives
// of each rank on it the one with this number. Both count from 0, as `op_index` in `diagnose --json` and in trace.db.
struct OperationName {
  bool is_p2p = false;
  uint32_t index = 0;
};
std::optional<OperationName> parse_operation(const std::string& text);

// Rows of Job::comms whose name is `name`, or whose id it is in hex, with or without 0x.
std::vector<uint32_t> find_comms(const model::Job& job, const std::string& name);
// Those of `comms` on which some rank has called it; a communicator that has any such operation for P2P.
std::vector<uint32_t> comms_with(const model::Job& job, const std::vector<uint32_t>& comms,
                                 const OperationName& name);

// Times are RunNs of the rank's own host; 0 unknown or never.
struct RankOperation {
  uint32_t process = 0;   // of Job::processes
  int32_t rank = -1;      // in the communicator; -1 unknown
  bool is_there = false;  // the rank has called it, and what it did is still in the run
  std::string func, datatype, gpu_source;
  uint64_t count = 0, bytes = 0;
  int32_t peer = -1, root = 0;
  int64_t called_ns = 0, enqueued_ns = 0, launched_ns = 0, gpu_start_ns = 0, gpu_end_ns = 0,
          gpu_error_ns = -1;
  bool has_tree = false;
  std::vector<EventNode> events;
};
struct Operation {
  uint32_t comm = 0;  // of Job::comms
  OperationName name;
  std::vector<RankOperation> ranks;  // by rank in the communicator
};
struct TreeLimits {
  std::optional<int32_t> rank;  // of this rank alone (in the communicator)
  size_t ranks = 16;            // that many at most
  size_t siblings = 4;          // see event_tree()
};
// Loads each process of the communicator once more. The job is gathered from `source`, matched and aligned.
Operation load_operation(const model::Job& job, model::TraceSource& source, uint32_t comm,
                         const OperationName& name, const TreeLimits& limits);

// A collective as the list shows it.
struct ListedOperation {
  uint32_t comm = 0, index = 0, signature = 0;
  uint32_t ranks = 0;    // that have called it
  int64_t first_ns = 0;  // the first call, on the reference host's clock where that is known
  int64_t spread_ns =
      -1;               // from the first to the last call; -1: clocks of several hosts that are not aligned
  int64_t gpu_ns = -1;  // the longest on a GPU; -1 unknown
};
// Of `comms`, by the first call. `p2ps` becomes the number of sends and receives, which are not among them.
std::vector<ListedOperation> list_operations(const model::Job& job, const std::vector<uint32_t>& comms,
                                             uint64_t& p2ps);

}  // namespace lockstep::cli::show
