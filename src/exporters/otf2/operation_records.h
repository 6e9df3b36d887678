// SPDX-License-Identifier: Apache-2.0
// What OTF2's records of communication say of an operation: MPI's words, the only ones for collectives on
// communicators.
#pragma once
#include <otf2/otf2.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::exporters::otf2 {

struct CollectiveKind {
  OTF2_CollectiveOp op;
  OTF2_RegionRole role;
  bool has_root;
};
// Nothing for a function that MPI does not have.
std::optional<CollectiveKind> collective_kind(std::string_view func);

// What one rank hands in and what it gets. `bytes` are those of one rank's part where ranks have parts, as
// NCCL's callers name them; `is_whole`: of all that the rank hands in, as declared operations (lockstep.h)
// do. `ranks` < 1: unknown, one.
struct Traffic {
  uint64_t sent = 0, received = 0;
};
Traffic traffic(OTF2_CollectiveOp op, uint64_t bytes, bool is_whole, int64_t ranks, bool is_root);

}  // namespace lockstep::exporters::otf2
