// SPDX-License-Identifier: Apache-2.0
// Bytes are those that a rank hands in and gets, as MPI counts them, not what an algorithm moves over links:
// OTF2's words are MPI's.
#include "exporters/otf2/operation_records.h"

#include <algorithm>
#include <iterator>

namespace lockstep::exporters::otf2 {
namespace {

struct Known {
  std::string_view func;
  CollectiveKind kind;
};
constexpr Known kKnown[] = {
    {"AllReduce", {OTF2_COLLECTIVE_OP_ALLREDUCE, OTF2_REGION_ROLE_COLL_ALL2ALL, false}},
    {"AllGather", {OTF2_COLLECTIVE_OP_ALLGATHER, OTF2_REGION_ROLE_COLL_ALL2ALL, false}},
    {"ReduceScatter", {OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK, OTF2_REGION_ROLE_COLL_ALL2ALL, false}},
    {"AlltoAll", {OTF2_COLLECTIVE_OP_ALLTOALL, OTF2_REGION_ROLE_COLL_ALL2ALL, false}},
    {"Broadcast", {OTF2_COLLECTIVE_OP_BCAST, OTF2_REGION_ROLE_COLL_ONE2ALL, true}},
    {"Scatter", {OTF2_COLLECTIVE_OP_SCATTER, OTF2_REGION_ROLE_COLL_ONE2ALL, true}},
    {"Reduce", {OTF2_COLLECTIVE_OP_REDUCE, OTF2_REGION_ROLE_COLL_ALL2ONE, true}},
    {"Gather", {OTF2_COLLECTIVE_OP_GATHER, OTF2_REGION_ROLE_COLL_ALL2ONE, true}},
    {"Barrier", {OTF2_COLLECTIVE_OP_BARRIER, OTF2_REGION_ROLE_BARRIER, false}},
};

}  // namespace

std::optional<CollectiveKind> collective_kind(std::string_view func) {
  for (const Known& known : kKnown) {
    if (known.func == func) return known.kind;
  }
  return std::nullopt;
}

Traffic traffic(OTF2_CollectiveOp op, uint64_t bytes, bool is_whole, int64_t ranks, bool is_root) {
  const auto parts = static_cast<uint64_t>(std::max<int64_t>(ranks, 1));
  const bool hands_in_parts = op == OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK ||
                              op == OTF2_COLLECTIVE_OP_ALLTOALL || op == OTF2_COLLECTIVE_OP_SCATTER;
  // From here on `bytes` is one rank's part, whoever counted it.
  if (is_whole && hands_in_parts) bytes /= parts;
  uint64_t whole = 0;
  // Sizes and ranks come from files and may be anything.
  if (__builtin_mul_overflow(bytes, parts, &whole)) whole = UINT64_MAX;
  switch (op) {
    case OTF2_COLLECTIVE_OP_BARRIER:
      return {};
    case OTF2_COLLECTIVE_OP_ALLGATHER:
      return {bytes, whole};
    case OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK:
      return {whole, bytes};
    case OTF2_COLLECTIVE_OP_ALLTOALL:
      return {whole, whole};
    case OTF2_COLLECTIVE_OP_BCAST:
      return {is_root ? bytes : 0, bytes};
    case OTF2_COLLECTIVE_OP_REDUCE:
      return {bytes, is_root ? bytes : 0};
    case OTF2_COLLECTIVE_OP_GATHER:
      return {bytes, is_root ? whole : 0};
    case OTF2_COLLECTIVE_OP_SCATTER:
      return {is_root ? whole : 0, bytes};
    default:
      return {bytes, bytes};
  }
}

}  // namespace lockstep::exporters::otf2
