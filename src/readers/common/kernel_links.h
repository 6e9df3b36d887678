// SPDX-License-Identifier: Apache-2.0
// Which kernels did the work of which call. A kernel that carries the arguments of its operation names its
// call. What was launched after its calls had returned (coalesced operations, batches of sends and receives)
// belongs to all calls of that thread and group which it can stand for and which nothing has claimed; replays
// of a CUDA graph belong to none.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/names/kernel_name.h"
#include "model/trace.h"

namespace lockstep::readers::common {

inline constexpr int64_t kNoTime = -1;
inline constexpr int64_t kNoLink = INT64_MIN;  // no number that ties things together

// A call of a communication operation on the host.
struct LinkedCall {
  int64_t start_ns = 0, end_ns = 0, tid = 0;
  int64_t external = kNoLink;  // what its kernels carry too
  uint32_t group = 0;          // calls of one group may share a launch
  model::StringId func = 0;
};
// A kernel of communication; its row is in the trace, with times on the clock of the calls.
struct LinkedKernel {
  uint32_t row = 0;
  int64_t external = kNoLink, correlation = kNoLink;
  bool is_named = false;  // it carries the arguments of its operation
  model::KernelWork work = model::KernelWork::kNone;
};
struct KernelLaunch {
  int64_t correlation = 0;
  bool is_flow = false;  // shown by an arrow alone
  int64_t start_ns = 0, end_ns = 0, tid = 0;
};

struct CallWork {                        // of one call; relative ns
  const KernelLaunch* launch = nullptr;  // the first
  int64_t gpu_start_ns = kNoTime, gpu_end_ns = kNoTime;
};

struct Links {
  std::vector<CallWork> work;            // by call
  std::vector<uint32_t> call_of_kernel;  // by kernel: the first of its calls; kNoRow none
  uint64_t graph_kernels = 0;            // of communication that a graph launched
  uint64_t unlinked_kernels = 0;         // of communication, else
  uint64_t silent_calls = 0;             // without a kernel
  int64_t contradiction_ns = 0;          // by how much a kernel began before its launch, at most
};

// `calls` in order of time. Sorts the launches, which the links point into.
Links link(std::span<const LinkedCall> calls, std::span<const LinkedKernel> kernels,
           std::vector<KernelLaunch>& launches, const model::Trace& trace);

}  // namespace lockstep::readers::common
