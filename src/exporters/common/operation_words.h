// SPDX-License-Identifier: Apache-2.0
// The words of an operation, made once per (communicator, shape): the arguments of PyTorch's
// record_param_comms under its exact keys and spellings, and the names of its slices. Texts are not escaped:
// that is the writer's part.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "exporters/common/arguments.h"
#include "model/trace.h"

namespace lockstep::exporters::common {

struct OperationWords {
  model::StringId kernel_name = 0;
  FixedArguments what;          // collective and data type
  FixedArguments even_splits;   // split sizes of an operation that has none
  FixedArguments group;         // group size, process group name, description, ranks
  FixedArguments global_ranks;  // where known; on the host event only
  FixedArguments plan;          // algorithm and protocol, where known
  std::string comm_hash;        // 16 hex digits; "unknown"
  std::string_view func;        // as the trace has it
  int32_t group_size = -1;      // -1 unknown
  std::vector<int32_t> ranks;   // global ranks of the members; empty unknown
  int32_t rank_argument =
      -1;  // what PyTorch calls Rank: the root of rooted operations, else the own rank; -1 unknown
  bool is_send = false;
};

class OperationWordsTable {
 public:
  // Texts go into `words`.
  OperationWordsTable(const model::Trace& trace, model::StringPool& words) : trace_(trace), words_(words) {}
  // Valid as long as the table. `op` may name a communicator or shape that the trace lacks: then the words
  // say unknown.
  const OperationWords& of(uint32_t op);

 private:
  OperationWords make(uint32_t comm, uint32_t shape, bool custom);
  FixedArguments::Item text(Argument argument, std::string_view value) {
    return {argument, true, words_.intern(value), 0};
  }
  const model::Trace& trace_;
  model::StringPool& words_;
  std::unordered_map<uint64_t, OperationWords> made_;
  uint32_t lists_ = 0;
};

}  // namespace lockstep::exporters::common
