// SPDX-License-Identifier: Apache-2.0
// From the GPU work of a process to the model: kernels and copies, and an operation for each kernel of
// RCCL's.
#pragma once
#include <vector>

#include "readers/rocpd/schema.h"

namespace lockstep::readers::rocpd {

// A process and its place in the run. Pointers into the source, which outlives it.
struct Placed {
  const Process* process = nullptr;
  std::string file;
  std::string clock;             // names the clock of its host
  size_t host = 0;               // number of the host that its names mean
  std::vector<int32_t> gpus;     // run-wide numbers, as Process::gpus
  SharedTexts* texts = nullptr;  // of its file
  bool shares_file = false;      // which holds other processes, too
};
void make_trace(const Placed& placed, Contents&& contents, model::Trace& trace);

}  // namespace lockstep::readers::rocpd
