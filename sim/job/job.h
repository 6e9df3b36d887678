// SPDX-License-Identifier: Apache-2.0
// A whole simulated job: what was asked for, and everything that follows from it and the seed before anything
// is simulated. Read-only once made; the writers of all ranks share it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "format/file_layout.h"
#include "job/clocks.h"
#include "job/faults/fault.h"
#include "job/layout.h"
#include "job/random.h"
#include "job/step_program.h"
#include "job/timeline.h"

namespace lockstep::sim::job {

struct JobOptions {
  uint64_t seed = 1;
  uint64_t again = 0;  // another run of the same job and fault: only what varies from run to run is different
  LayoutSizes layout;
  ProgramSizes program;
  int steps = 10;
  format::Mode mode = format::Mode::kDefault;
  std::string fault = "none";
  double hang_seconds = 60;  // that the living are recorded after the last event
  bool marks = false;
  std::vector<SlowFunc> slow_funcs;  // beside the fault
  double end_share = 1;              // all processes are killed so far through the job; 1: they are not
  int ring = 0;                      // chunks that each thread keeps, the newest; 0: all
};

// Which of the times that a launcher started the job.
struct Attempt {
  int number = 0;
  int64_t begins_ns = 0;  // after the first
};

struct Job {
  static Result<Job> make(const JobOptions& options, Attempt attempt = {});

  JobOptions options;
  Random random;
  Layout layout;
  std::vector<Program> programs;  // by stage
  FaultPlan fault;
  std::vector<HostClock> hosts;
  std::vector<GpuClock> gpus;  // by rank
  Attempt attempt;

  bool deep() const { return options.mode == format::Mode::kDeep; }
  const Program& program(int rank, int step) const;
  const HostClock& clock_of(int rank) const { return hosts[static_cast<size_t>(layout.host_of(rank))]; }
  std::string host_name(int host) const;
};

struct JobResult {
  uint64_t ops = 0, bytes = 0;
  uint64_t files = 0;
  double job_seconds = 0;  // of true time
};
// Simulates the job and writes its run directory: process files, truth.json. `directory` is made; must be new
// or empty.
Result<JobResult> write_run(const Job& job, const std::string& directory, size_t threads);

}  // namespace lockstep::sim::job
