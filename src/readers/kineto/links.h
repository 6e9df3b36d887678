// SPDX-License-Identifier: Apache-2.0
// Which kernels did the work of which call. A kernel that carries the arguments of its operation names its call. What was
// launched after its calls had returned (coalesced operations, batches of sends and receives) belongs to all calls of
// that thread and group which it can stand for and which nothing has claimed; replays of a CUDA graph belong to none.
#pragma once
#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "readers/kineto/recording.h"

namespace lockstep::readers::kineto {

inline constexpr int64_t kNoTime = -1;

struct CallWork {  // of one call; relative ns
  int64_t launched_ns = kNoTime, gpu_start_ns = kNoTime, gpu_end_ns = kNoTime;
};

struct Links {
  std::vector<CallWork> work;            // by call
  std::vector<uint32_t> call_of_kernel;  // by Recording::kernels: the first of its calls; kNoRow none
  uint64_t graph_kernels = 0;            // of communication that a graph launched
  uint64_t unlinked_kernels = 0;         // of communication, else
  uint64_t silent_calls = 0;             // without a kernel
  int64_t contradiction_ns = 0;          // by how much a kernel began before its launch, at most
};

// `recording.calls` in order of time. Sorts its launches.
Links link(Recording& recording, const model::Trace& trace);

}  // namespace lockstep::readers::kineto
