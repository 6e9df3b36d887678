// SPDX-License-Identifier: Apache-2.0
// PyTorch's numbers for what NCCL's callbacks give. A profiler plugin sees communicators, not process groups:
// the group's name is known where PyTorch put it into the communicator's (2026 on), its members where all of
// them left a file, and the number of an operation by counting as PyTorch counts. Each of these stops as soon
// as it could be wrong: a wrong number is worse than none.
//
//   collective             +1 in the group; several in one group of NCCL are one number for PyTorch, and get
//                          no id
//   send or receive alone  +1 among the group's sends and receives
//   sends and receives in one group of NCCL, with oneself among them: PyTorch's all-to-all, +1 among the
//   collectives, whose parts get no id. Without: an all-to-all with nothing for oneself, a batch, or a
//   gather's root; nothing is known from there on
//
// PyTorch's gather and scatter are a single send or receive on all but the root, and are taken for one.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "model/torch/comms_id.h"
#include "model/trace.h"

namespace lockstep::model {

inline bool has_torch_seq(const Trace& trace, size_t op) {
  return trace.ops.torch_comms_id[op] != 0 || trace.ops.torch_seq[op] > 0;
}

// Sets torch_seq, and torch_comms_id where the operation's group is known. A negative `seq`: not known.
void set_torch_number(const Trace& trace, Op& op, int64_t seq, bool is_p2p);

// Global ranks of the members of a run's communicators.
class RunMembers {
 public:
  // One member as its process reports it; -1 unknown.
  void add(uint64_t comm_id, int32_t ranks, int32_t rank, int32_t global_rank);
  // After the last `add`.
  void finish();
  // Nothing unless each rank of the communicator was reported, by one process.
  std::optional<RankProgression> of(uint64_t comm_id, int32_t ranks) const;

 private:
  using Key = std::pair<uint64_t, int32_t>;
  struct Reported {
    std::map<int32_t, int32_t> global;  // by rank
    bool is_contradicted = false;
  };
  std::map<Key, Reported> reported_;
  std::map<Key, RankProgression> known_;
};

// Fills comms.group_name and what goes with it, where it is empty and can be determined.
void name_torch_groups(Trace& trace, const RunMembers& members);
// Fills ops.torch_seq and torch_comms_id of a trace of process files, whose groups are named: of declared
// operations by what the program said, of NCCL's by counting.
void number_torch_operations(Trace& trace);

}  // namespace lockstep::model
