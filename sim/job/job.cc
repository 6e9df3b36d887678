// SPDX-License-Identifier: Apache-2.0
#include "job/job.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>

#include "base/parallel.h"
#include "job/links.h"
#include "job/process_writer.h"
#include "job/simulation.h"
#include "job/truth.h"

namespace lockstep::sim::job {
namespace {

Result<void> make_directory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Error{ErrorCode::kIo, "cannot be made: " + error.message(), directory};
  if (!std::filesystem::is_empty(directory, error))
    return Error{ErrorCode::kUsage, "the run directory must be new or empty", directory};
  return {};
}

}  // namespace

Result<Job> Job::make(const JobOptions& options) {
  const Random random(options.seed);
  LOCKSTEP_ASSIGN(Layout layout, Layout::make(options.layout, random));
  std::vector<Program> programs = make_programs(layout, options.program, random);
  LOCKSTEP_ASSIGN(FaultPlan fault, plan_fault(options.fault, {layout, programs, options.steps,
                                                              options.mode == format::Mode::kDeep, random}));
  fault.disturbance.slow_funcs = options.slow_funcs;
  const Random varying(options.again == 0 ? options.seed : random.bits(Draw::kAgain, options.again));
  Job job{options, varying, std::move(layout), std::move(programs), std::move(fault), {}, {}};
  for (int host = 0; host < job.layout.hosts(); ++host) job.hosts.emplace_back(host, varying);
  for (int rank = 0; rank < job.layout.ranks(); ++rank)
    job.gpus.emplace_back(rank, job.clock_of(rank), varying);
  return job;
}

const Program& Job::program(int rank, int step) const {
  const auto& replaced = fault.disturbance.programs;
  if (auto found = replaced.find({rank, step}); found != replaced.end()) return found->second;
  return programs[static_cast<size_t>(layout.stage_of(rank))];
}

std::string Job::host_name(int host) const {
  char name[32];
  std::snprintf(name, sizeof name, "node-%03d", host);
  return name;
}

Result<JobResult> write_run(const Job& job, const std::string& directory, size_t threads) {
  LOCKSTEP_TRY(make_directory(directory));
  const Timeline timeline =
      Simulation(job.layout, job.programs, job.fault.disturbance, {job.options.steps, job.deep()}, job.random)
          .run();
  const Links links(job.layout, job.fault.disturbance);
  JobResult result;
  result.job_seconds = static_cast<double>(timeline.last) * 1e-9;
  std::mutex lock;
  std::optional<Error> failed;
  std::atomic<bool> stop = false;
  for_each_parallel(static_cast<size_t>(job.layout.ranks()), threads, [&](size_t i) {
    const int rank = static_cast<int>(i);
    if (stop || job.fault.disturbance.lost_files.contains(rank)) return;
    auto written = ProcessWriter(job, links, timeline, rank).write(directory);
    const std::lock_guard guard(lock);
    if (!written) {
      failed = written.error();
      stop = true;
      return;
    }
    result.ops += written->ops;
    result.files += written->files;
    result.bytes += written->bytes;
  });
  if (failed) return *failed;
  const std::string truth = directory + "/truth.json";
  std::ofstream out(truth);
  out << truth_json(job, timeline, result);
  if (!out.flush()) return Error{ErrorCode::kIo, "cannot be written", truth};
  return result;
}

}  // namespace lockstep::sim::job
