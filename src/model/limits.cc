// SPDX-License-Identifier: Apache-2.0
// A rank or a size from a file becomes the length of a table later. What no job has becomes "unknown" here,
// once, behind every reader, so that no analysis needs a limit of its own.
#include "model/limits.h"

#include <span>

namespace lockstep::model {
namespace {

// What is below -1 or above `most` becomes `unknown`.
uint64_t drop_beyond(std::span<int32_t> values, int32_t most, int32_t unknown = -1) {
  uint64_t dropped = 0;
  for (int32_t& value : values) {
    if (value >= -1 && value <= most) continue;
    value = unknown;
    ++dropped;
  }
  return dropped;
}

}  // namespace

uint64_t drop_impossible(Trace& trace) {
  uint64_t dropped = 0;
  ProcessTable& processes = trace.processes;
  // A rank is below the size, so the highest one is one less than the largest size.
  for (auto column : {&ProcessTable::rank, &ProcessTable::local_rank, &ProcessTable::node_rank})
    dropped += drop_beyond(processes.all(column), kMostRanks - 1);
  dropped += drop_beyond(processes.all(&ProcessTable::world), kMostRanks);
  CommTable& comms = trace.comms;
  dropped += drop_beyond(comms.all(&CommTable::rank), kMostRanks - 1);
  for (auto column : {&CommTable::ranks, &CommTable::nodes})
    dropped += drop_beyond(comms.all(column), kMostRanks);
  return dropped + drop_beyond(trace.shapes.all(&ShapeTable::root), kMostRanks - 1, 0);
}

}  // namespace lockstep::model
