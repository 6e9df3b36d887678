// SPDX-License-Identifier: Apache-2.0
// lockstep-sim-job: writes the run directory of a simulated job.
#include <cinttypes>
#include <cstdio>
#include <filesystem>

#include "base/parallel.h"
#include "job/job.h"
#include "job/live.h"
#include "job/options.h"

namespace lockstep::sim::job {
namespace {

constexpr int kExitBadInput = 2;

int fail(const Error& error) {
  std::fprintf(stderr, "lockstep-sim-job: %s\n", error.message().c_str());
  return kExitBadInput;
}

std::string own_plugin() {
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return program.parent_path().parent_path() / "lib" / "liblockstep-nccl.so";
}

int run(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return fail(options.error());
  if (options->help) {
    std::fputs(help_text().c_str(), stdout);
    return 0;
  }
  const auto job = Job::make(options->job);
  if (!job) return fail(job.error());
  if (options->live) {
    const auto done =
        run_live(*job, {options->plugin.empty() ? own_plugin() : options->plugin, options->output});
    return done ? 0 : fail(done.error());
  }
  const size_t threads = options->threads != 0 ? options->threads : parallel_threads();
  const auto result = write_run(*job, options->output, threads);
  if (!result) return fail(result.error());
  std::printf("%s: %" PRIu64 " files, %.1f MB, %" PRIu64 " operations, %.3f s of job\n",
              options->output.c_str(), result->files, static_cast<double>(result->bytes) * 1e-6, result->ops,
              result->job_seconds);
  return 0;
}

}  // namespace
}  // namespace lockstep::sim::job

int main(int argc, char** argv) { return lockstep::sim::job::run(argc, argv); }
