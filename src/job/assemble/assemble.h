// SPDX-License-Identifier: Apache-2.0
// Puts calls, tasks and GPU work together into operations: fills `ops` of a trace whose other tables are
// read.
//   a task (Coll, P2p, CeColl, ApiOp) is one operation, with the call that asked for it, if that is known
//   a CollApi or P2pApi without a task is an operation of its own kind (NCCL ran it on a path that reports no
//   task, or it was captured into a graph that did not run) each replay of a captured graph is one operation:
//   its tasks share the captured call; or its kernel alone tells it kernels that the GPU driver's tools told
//   give operations their GPU times, before those of KernelCh
// Order and `index` follow the calls' begin; replays and tasks without a call follow their enqueue.
#pragma once
#include "base/result.h"
#include "model/trace.h"

namespace lockstep::job::assemble {

// An error if the trace already has operations.
Result<void> assemble(model::Trace& trace);

}  // namespace lockstep::job::assemble
