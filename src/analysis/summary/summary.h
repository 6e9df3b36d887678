// SPDX-License-Identifier: Apache-2.0
// The figures of `summary`: operations by kind and size, what each rank did, and steps. Fed one process at a
// time.
//
// Sizes and bandwidths follow nccl-tests (model/names/operation_size.h). Times are GPU times of single ranks,
// so they include waiting for the others; operations whose GPU times are not known have none.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/column_memory.h"
#include "model/trace.h"

namespace lockstep::analysis::summary {

// Percentiles are values that occurred (nearest rank), so no operation lies between two.
struct Durations {
  uint64_t count = 0;
  double min_ns = 0, avg_ns = 0, p50_ns = 0, p99_ns = 0, max_ns = 0;
};
// Sorts them.
Durations summarize(std::span<int64_t> values);

// Operations of one function, type, communicator and size class, over all ranks.
struct OpFigures {
  std::string func, datatype, comm;  // comm: its name, or its id
  uint64_t comm_id = 0;
  int64_t ranks = -1;
  uint64_t size_from = 0, size_to = 0;  // sizes in the bucket: a power of two up to the next, exclusive
  uint64_t ops = 0, bytes = 0;          // bytes: sum of S over ops
  Durations gpu, enqueue;               // enqueue: from the call to the end of NCCL's enqueueing, on the host
  double algbw = 0, busbw = 0;          // GB/s; 0 unknown
};
// One process. Times are of its own host's clock.
struct RankFigures {
  std::string host;
  int64_t rank = -1, pid = 0, device = -1;  // device: as the host counts it
  uint64_t ops = 0, bytes = 0;
  double seconds = 0;  // first to last record
  double busy = -1;    // share of it with communication on the GPU, by union; -1 unknown
  uint64_t steps = 0;
  Durations step;
};
// Histograms round sizes up, so `size_to` is in its class, unlike that of OpFigures. -1: no duration was
// measured.
struct RingFigures {  // ring retention: over the whole life of the processes
  std::string func, datatype;
  uint64_t size_to = 0, ops = 0, bytes = 0, timed = 0;
  double avg_ns = -1, min_ns = -1, max_ns = -1;
};
// Everything that needs no other rank. Rows of texts and numbers alone: the traces may be gone.
struct SummaryFigures {
  std::vector<OpFigures> ops;  // the most GPU time first, then the most bytes
  std::vector<RankFigures> ranks;
  std::vector<RingFigures> ring;
  bool is_amd = false;  // any GPU is AMD's
};

// Not safe for several threads. Memory grows by 8 bytes for each duration that is known.
class Summary {
 public:
  // `trace` holds one process. Nothing of it is kept but numbers and texts.
  void add(const model::Trace& trace);
  // Sorts the durations in place.
  SummaryFigures figures();

 private:
  struct OpKey {
    uint64_t comm_id;
    std::string comm, func, datatype;
    uint8_t bucket;
    auto operator<=>(const OpKey&) const = default;
  };
  struct OpSums {
    uint64_t ops = 0, bytes = 0, timed_bytes = 0;
    int64_t ranks = -1;
    Column<int64_t> gpu, enqueue;
  };
  // Histograms of all communicators and processes are added up.
  struct RingKey {
    std::string func, datatype;
    uint8_t bucket;
    auto operator<=>(const RingKey&) const = default;
  };
  struct RingSums {
    uint64_t ops = 0, bytes = 0, timed = 0, sum_ns = 0, min_ns = 0, max_ns = 0;
  };
  void add_ops(const model::Trace& trace, RankFigures& rank);
  void add_histograms(const model::Trace& trace);

  std::map<OpKey, OpSums> ops_;
  std::map<RingKey, RingSums> ring_;
  std::vector<RankFigures> ranks_;
  bool is_amd_ = false;
};

}  // namespace lockstep::analysis::summary
