// SPDX-License-Identifier: Apache-2.0
// What tells the events of one process apart and links them: a key that all ranks of an operation share, and
// which launch belongs to which work. Made once for a trace, then only read.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/run_numbers.h"
#include "model/trace.h"

namespace lockstep::exporters::common {

class OperationFacts {
 public:
  // `first_correlation` numbers the trace's first op, and launches behind the ops: correlations are unique in
  // the file.
  OperationFacts(const model::Trace& trace, uint64_t first_correlation);

  uint64_t rank_key(uint32_t op) const {
    return rank_keys_[op];
  }  // equal on all ranks of an operation; 0 none
  bool has_same_index(uint32_t op) const {
    return numbers_.has_same_index(trace_.ops.comm[op], trace_.ops.peer[op]);
  }
  // First of the operations whose kernel launch began then, in host ns; kNoRow none.
  uint32_t op_of_launch(int64_t launched_ns) const;
  // Whether a launch bears the op's correlation. Of several ops in one launch the first has it; HTA drops
  // kernels that no host event has, so the host events of the others bear theirs.
  bool has_own_launch(uint32_t op) const { return op_of_launch(trace_.ops.launched_ns[op]) == op; }
  // First kernel of a launch that is no operation's and began after it; kNoRow none.
  uint32_t first_kernel(uint32_t launch) const { return first_kernels_[launch]; }
  uint64_t op_correlation(uint32_t op) const { return first_correlation_ + op; }
  uint64_t launch_correlation(uint32_t launch) const {
    return first_correlation_ + trace_.ops.size() + launch;
  }

 private:
  void find_first_kernels();
  void identify_ops();

  const model::Trace& trace_;
  const uint64_t first_correlation_;
  const model::OperationNumbers numbers_;
  std::vector<uint64_t> rank_keys_;
  std::unordered_map<int64_t, uint32_t> op_by_launch_;
  std::vector<uint32_t> first_kernels_;
};

}  // namespace lockstep::exporters::common
