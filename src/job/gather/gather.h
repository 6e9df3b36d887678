// SPDX-License-Identifier: Apache-2.0
// Reads a run into a Job: every process' operations, what it was in the middle of, its network transfers in
// sums. Two processes are in memory as whole traces at a time for each thread; what stays is 61 bytes an
// operation.
#pragma once
#include <functional>

#include "base/result.h"
#include "model/job.h"
#include "model/trace_source.h"

namespace lockstep::job::gather {

struct Options {
  unsigned threads = 0;                  // 0: as many as the machine has cores
  std::function<void(double)> progress;  // called with 0..1 by one thread at a time; may be empty
};
// A process that cannot be loaded is a loss of the job (stage "read", kind "unreadable_process"); an error if
// none can. The operations are in the process' own numbering: job/match makes the numbers comparable.
Result<model::Job> gather(model::TraceSource& source, const Options& options);

}  // namespace lockstep::job::gather
