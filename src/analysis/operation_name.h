// SPDX-License-Identifier: Apache-2.0
// One operation of a job as people name it. The one place that words it: its number is the one that `lockstep
// show --op` takes and `op_index` has, so whoever reads a sentence finds the operation.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/finding.h"
#include "model/job.h"

namespace lockstep::analysis {

struct OperationName {
  std::string comm{};  // as comm_text words it
  std::string func{};  // empty unknown
  uint64_t index = 0;  // n-th collective of the communicator, or n-th transfer between the two ranks; from 0
  // So many operations of this function were before it on the communicator; nothing where that is not known.
  std::optional<uint64_t> of_func{};
  std::string source{}, target{};  // "rank 2", "rank 3": of a send or receive; else empty

  // "operation 1329 of mesh_dp:1 (its 1,295th AllReduce)", "operation 1329 of mesh_dp:1 (AllReduce)",
  // "transfer 17 from rank 2 to rank 3 on pp:0 (Send)"
  std::string text() const;
};

// `op`: position in the JobOps of the process. The job is matched.
OperationName operation_name(const model::Job& job, uint32_t process, uint32_t op);

// "mesh_dp:1"; of one without a name "world 0x12ab", or "0x12ab of 4 ranks".
std::string comm_text(const model::Job& job, uint32_t comm);

// Says in a finding which operation it is about: comm, comm_row, func, op_index, operation and op_address.
void name_operation(const model::Job& job, uint32_t process, uint32_t op, Finding& finding);

}  // namespace lockstep::analysis
