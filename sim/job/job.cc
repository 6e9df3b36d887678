// SPDX-License-Identifier: Apache-2.0
#include "job/job.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

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
  Job job{options, random, std::move(layout), std::move(programs), std::move(fault), {}, {}};
  for (int host = 0; host < job.layout.hosts(); ++host) job.hosts.emplace_back(host, random);
  for (int rank = 0; rank < job.layout.ranks(); ++rank)
    job.gpus.emplace_back(rank, job.clock_of(rank), random);
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

Result<JobResult> write_run(const Job& job, const std::string& directory, unsigned threads) {
  LOCKSTEP_TRY(make_directory(directory));
  const Timeline timeline =
      Simulation(job.layout, job.programs, job.fault.disturbance, {job.options.steps, job.deep()}, job.random)
          .run();
  const Links links(job.layout, job.fault.disturbance);
  JobResult result;
  result.job_seconds = static_cast<double>(timeline.last) * 1e-9;
  std::atomic<int> next = 0;
  std::mutex lock;
  std::optional<Error> failed;
  auto work = [&] {
    for (int rank = next++; rank < job.layout.ranks(); rank = next++) {
      if (job.fault.disturbance.lost_files.contains(rank)) continue;
      auto written = ProcessWriter(job, links, timeline, rank).write(directory);
      const std::lock_guard guard(lock);
      if (!written) {
        failed = written.error();
        return;
      }
      result.ops += written->ops;
      result.files += written->files;
      result.bytes += written->bytes;
    }
  };
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < threads; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  if (failed) return *failed;
  const std::string truth = directory + "/truth.json";
  std::ofstream out(truth);
  out << truth_json(job, timeline, result);
  if (!out.flush()) return Error{ErrorCode::kIo, "cannot be written", truth};
  return result;
}

}  // namespace lockstep::sim::job
