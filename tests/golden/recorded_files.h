// SPDX-License-Identifier: Apache-2.0
// Process files as the capture libraries would have written them, made of recordings: a tape
// (sim/nccl_host/tape.h) becomes a .nccl.lks and CUPTI's records of the same process, JSON Lines, a
// .cuda.lks. Both at the recorded times to the nanosecond. The recordings know threads by their kernel ids,
// which stand in for pthread_self().
//
// Of CUPTI's records, a line is {"kind":"kernel", name (mangled), start, end, device, stream, correlation,
// graph, node, blocks} or {"kind":"api", name, start, end, tid, correlation}; times are ns of
// CLOCK_MONOTONIC, as the tape's are.
#pragma once
#include <string>

#include "base/result.h"

namespace lockstep::golden {

struct RecordedOptions {
  bool kernel_channels =
      true;                  // KernelCh events, and what NCCL reports of graph replays only because of them
  bool launch_calls = true;  // false: as CUPTI before CUDA 13
};

// Writes `name`.nccl.lks into a directory, and `name`.cuda.lks where `cupti` is not empty.
Result<void> write_recorded(const std::string& tape, const std::string& cupti, const std::string& directory,
                            const std::string& name, const RecordedOptions& options = {});

}  // namespace lockstep::golden
