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

// What --op takes; all count from 0. "12" or "coll:12": a collective by its number on the communicator, which
// is the same on all ranks, and `op_index` in `diagnose --json` and in trace.db. "p2p:3": of each rank's
// sends and receives the one with this number, `op_index` in trace.db. "p2p:2-3:17": of what rank 2 of the
// communicator sends to rank 3, with its receive.
struct OperationName {
  struct Pair {
    int32_t source = -1, target = -1;
    bool operator==(const Pair&) const = default;
  };
  bool is_p2p = false;
  uint32_t index = 0;
  std::optional<Pair> pair = std::nullopt;
  bool operator==(const OperationName&) const = default;
};
std::optional<OperationName> parse_operation(const std::string& text);

// Rows of Job::comms whose name is `name`, or whose id it is in hex, with or without 0x.
std::vector<uint32_t> find_comms(const model::Job& job, const std::string& name);
// Those of `comms` on which some rank has called it.
std::vector<uint32_t> comms_with(const model::Job& job, const std::vector<uint32_t>& comms,
                                 const OperationName& name);

// What has this Comms Id of PyTorch's. Its hash is weak: several operations may; and the n-th send of every
// rank has one.
struct FoundOperation {
  uint32_t comm = 0;  // of Job::comms
  OperationName name;
  bool operator==(const FoundOperation&) const = default;
};
std::vector<FoundOperation> find_comms_id(const model::Job& job, uint64_t id);
// What --op takes for it.
std::string address(const OperationName& name);

// Times are RunNs of the rank's own host; 0 unknown or never.
struct RankOperation {
  uint32_t process = 0;   // of Job::processes
  int32_t rank = -1;      // in the communicator; -1 unknown
  int32_t job_rank = -1;  // in the job
  bool sends = false;     // its end of a pair
  bool is_there = false;  // the rank has called it, and what it did is still in the run
  std::string func, datatype, gpu_source;
  uint64_t count = 0, bytes = 0;
  int32_t peer = -1, root = 0;
  int64_t called_ns = 0, enqueued_ns = 0, launched_ns = 0, gpu_start_ns = 0, gpu_end_ns = 0,
          gpu_error_ns = -1;
  // What processes that drive its network (PXN) call its communicator and its task; 0 none.
  uint64_t context = 0, handle = 0;
  bool has_tree = false;
  std::vector<EventNode> events;
};
struct Operation {
  uint32_t comm = 0;  // of Job::comms
  OperationName name;
  std::vector<RankOperation> ranks;  // by rank in the communicator; of a pair the sender, then the receiver
};
struct TreeLimits {
  std::optional<int32_t>
      rank;           // of this rank of the job alone; of the communicator, where it has none of this number
  size_t ranks = 16;  // that many at most
  size_t siblings = 4;  // see event_tree()
};
// Loads each process of the communicator once more, and those that drove its network. The job is gathered
// from `source`, matched and aligned.
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
