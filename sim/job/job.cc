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

Result<Job> Job::make(const JobOptions& options, Attempt attempt) {
  const Random random(options.seed);
  // Communicators are new ones in each attempt; all else is as it was.
  const auto number = static_cast<uint64_t>(attempt.number);
  LOCKSTEP_ASSIGN(
      Layout layout,
      Layout::make(options.layout, number == 0 ? random : Random(random.bits(Draw::kIdentity, 6, number))));
  std::vector<Program> programs = make_programs(layout, options.program, random);
  LOCKSTEP_ASSIGN(FaultPlan fault,
                  plan_fault(options.fault, {layout, programs, options.program, options.steps,
                                             options.mode == format::Mode::kDeep, random}));
  fault.disturbance.slow_funcs = options.slow_funcs;
  if (options.ring > 0) {
    for (int rank = 0; rank < layout.ranks(); ++rank) fault.disturbance.ring_chunks[rank] = options.ring;
    fault.truth.op_index = -1;  // nobody knows how many were recycled
  }
  const Random varying(options.again == 0 ? options.seed : random.bits(Draw::kAgain, options.again));
  Job job{options, varying, std::move(layout), std::move(programs), std::move(fault), {}, {}, attempt};
  for (int host = 0; host < job.layout.hosts(); ++host)
    job.hosts.emplace_back(host, varying, attempt.begins_ns);
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

namespace {

Timeline play(const Job& job) {
  Timeline timeline =
      Simulation(job.layout, job.programs, job.fault.disturbance, {job.options.steps, job.deep()}, job.random)
          .run();
  if (job.options.end_share < 1) {
    const auto runs = static_cast<double>(timeline.last - kFirstStepNs);
    timeline.killed = kFirstStepNs + static_cast<int64_t>(runs * job.options.end_share);
  }
  return timeline;
}

Result<void> write_processes(const Job& job, const Timeline& timeline, const std::string& directory,
                             size_t threads, JobResult* result) {
  const Links links(job.layout, job.fault.disturbance);
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
    result->ops += written->ops;
    result->files += written->files;
    result->bytes += written->bytes;
  });
  if (failed) return *failed;
  return {};
}

// What earlier attempts left; where the next one begins.
Result<Attempt> write_earlier(const Job& job, const std::string& directory, size_t threads,
                              JobResult* result) {
  Attempt next;
  for (const EarlierAttempt& earlier : job.fault.earlier) {
    JobOptions options = job.options;
    options.layout = earlier.sizes;
    options.fault = "none";
    options.end_share = earlier.end_share;
    LOCKSTEP_ASSIGN(const Job before, Job::make(options, next));
    const Timeline timeline = play(before);
    LOCKSTEP_TRY(write_processes(before, timeline, directory, threads, result));
    next.begins_ns += timeline.killed + static_cast<int64_t>(earlier.pause_s * 1e9);
    ++next.number;
  }
  return next;
}

}  // namespace

Result<JobResult> write_run(const Job& planned, const std::string& directory, size_t threads) {
  LOCKSTEP_TRY(make_directory(directory));
  JobResult result;
  LOCKSTEP_ASSIGN(const Attempt attempt, write_earlier(planned, directory, threads, &result));
  Job job = planned;
  if (attempt.number > 0) {
    LOCKSTEP_ASSIGN(job, Job::make(planned.options, attempt));
  }
  const Timeline timeline = play(job);
  result.job_seconds = static_cast<double>(attempt.begins_ns + timeline.last) * 1e-9;
  LOCKSTEP_TRY(write_processes(job, timeline, directory, threads, &result));
  const std::string truth = directory + "/truth.json";
  std::ofstream out(truth);
  out << truth_json(job, timeline, result);
  if (!out.flush()) return Error{ErrorCode::kIo, "cannot be written", truth};
  return result;
}

}  // namespace lockstep::sim::job
