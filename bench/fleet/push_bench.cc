// SPDX-License-Identifier: Apache-2.0
// What sending a run to a store costs the sender: push_bench RUN URL. Reading the run is not in it.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "analysis/rollup/rollups.h"
#include "store/fleet.h"
#include "verdict/diagnosed_run.h"

namespace {

using namespace lockstep;

double cpu_seconds() {
  struct timespec time {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fail({ErrorCode::kUsage, "push_bench RUN URL", {}});
  const auto diagnosed = verdict::diagnose({argv[1]}, [](const auto&...) {});
  if (!diagnosed) return fail(diagnosed.error());
  const auto with_job = std::find_if(diagnosed->evidence.begin(), diagnosed->evidence.end(),
                                     [](const auto& of) { return of.job.has_value(); });
  if (with_job == diagnosed->evidence.end()) return fail({ErrorCode::kUsage, "holds no operations", argv[1]});
  store::FleetRun run;
  run.job = &*with_job->job;
  run.name = run.lockstep_version = "bench";
  run.rollups = analysis::rollup::rollups(*with_job->job);
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_begin = cpu_seconds();
  const auto pushed = store::push(run, {.url = argv[2], .key = {}}, {});
  if (!pushed) return fail(pushed.error());
  const double cpu = cpu_seconds() - cpu_begin;
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const std::string& difference : pushed->differences)
    std::printf("DIFFERENCE: %s\n", difference.c_str());
  const auto rows = static_cast<double>(pushed->sent_rows);
  std::printf("%.0f rows: %.2f M rows/s a core of the sender, %.2f M rows/s in all, %.1f bytes a row sent\n",
              rows, rows / cpu / 1e6, rows / wall / 1e6, static_cast<double>(pushed->sent_bytes) / rows);
  return 0;
}
