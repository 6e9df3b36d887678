// SPDX-License-Identifier: Apache-2.0
// The events of one operation of one process, as they hang together:
//   GroupApi > CollApi or P2pApi, KernelLaunch
//   Group (a kernel plan) > Coll, P2p or CeColl > KernelCh, KernelPhase, CeSync, CeBatch, ProxyOp > ProxyStep
//   > NetPlugin kernels and copies that the GPU ran for it
// ProxyOps that another process did for it (PXN) are in that process' trace: load_operation() adds them.
// Siblings alike beyond a limit are folded into one that counts and sums them; what never ended stays by
// itself, as far as the limit goes, because it is what one looks for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace lockstep::cli::show {

struct EventState {
  std::string name;
  int64_t ns = 0;
};

// Times are RunNs of the process' host.
struct EventNode {
  std::string event;                 // "GroupApi", ...; "GPU kernel"
  std::string detail;                // what is known of this one, or of all that are folded; may be empty
  uint32_t process = model::kNoRow;  // of the job: another process that did it for this one (PXN)
  int64_t tid = -1;                  // kernel thread id; -1: none, or several
  std::string thread;                // its name
  uint64_t count = 1;                // events that it stands for
  uint64_t open = 0;                 // of those, never ended
  int64_t begin_ns = 0, end_ns = 0;  // 0: unknown, never. Of several: the first begin, the last end
  std::vector<EventState> states;
  std::vector<EventNode> children;
};

// Of a row of `trace.ops`; `most`: how many siblings alike are shown one by one.
std::vector<EventNode> event_tree(const model::Trace& trace, uint32_t op, size_t most);

}  // namespace lockstep::cli::show
