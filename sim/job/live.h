// SPDX-License-Identifier: Apache-2.0
// The same job in real time: a process per rank, forked from this one, that calls the capture library as NCCL
// does and waits for the others through shared memory. All on this host. Faults that need no clock, GPU or
// network of their own happen to the processes: they sleep, stop, end, are killed, or call something else.
#pragma once
#include <string>

#include "job/job.h"

namespace lockstep::sim::job {

struct LiveOptions {
  std::string plugin;     // liblockstep-nccl.so
  std::string directory;  // of the run; is made
};
// Runs until every process has ended, or SIGINT or SIGTERM arrives: then all are killed. Prints who is who.
Result<void> run_live(const Job& job, const LiveOptions& options);

}  // namespace lockstep::sim::job
