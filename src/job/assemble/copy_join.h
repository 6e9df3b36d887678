// SPDX-License-Identifier: Apache-2.0
// Which copies did which copy-engine collectives, where the GPU driver's tools gave the copies. Nothing but
// order and size ties the two: NCCL says of each batch how many copies it made and how many bytes they have
// together, and copies bear numbers (correlations) in the order of their calls, one for all copies of a call
// that made several. So batches and runs of copies of one device that look alike are joined in their order,
// if there are equally many and no copy begins before its batch. That is a guess, and counted as one. Batches
// that were captured into graphs are left out.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "model/trace.h"

namespace lockstep::job::assemble {

class CopyJoin {
 public:
  // Adds to the losses of `trace`, which outlives it.
  explicit CopyJoin(model::Trace& trace);
  // The copies of a CeColl, as rows of kernels; none: not known which.
  std::span<const uint32_t> of(uint32_t task) const;

 private:
  struct Look {  // of a batch, or a run of copies
    int32_t gpu;
    uint64_t copies, bytes;
    auto operator<=>(const Look&) const = default;
  };
  struct Run {
    size_t first;  // in copies_
    int64_t start_ns;
  };
  struct OfTask {
    uint32_t task, copy;
  };
  void list_batches();
  void list_copies();
  void add_runs(size_t first, size_t end);
  void add_run(size_t first, size_t end);
  void join();

  model::Trace& trace_;
  std::map<Look, std::vector<uint32_t>> batches_;  // rows of calls, by time
  // Copies of a batch whose copies, on a GPU, have this size; kNoRow: of batches of several numbers.
  std::map<std::pair<int32_t, uint64_t>, uint64_t> copies_of_size_;
  std::map<Look, std::vector<Run>> runs_;  // in the order of their calls
  std::vector<uint32_t> copies_;           // by gpu, correlation and time
  std::vector<OfTask> joined_;             // by task and time
  std::vector<uint32_t> joined_copies_;    // in the order of joined_
};

}  // namespace lockstep::job::assemble
