// SPDX-License-Identifier: Apache-2.0
// `counters` is the sampler of `trace` by itself, for hosts on which no launcher of ours runs: jobs that load
// the capture library on their own, as under Slurm's or Kubernetes' own launchers. It waits for the run
// instead of making its directory, since `trace` never takes one over that is there.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/kit/interrupt.h"
#include "links/samples/host_lock.h"
#include "links/samples/sampler.h"
#include "run/process_info.h"
#include "run/run_directory.h"

namespace lockstep::cli {
namespace {

constexpr Option kCountersOptions[] = {
    {0, "watch", "",
     "sample ten times as often until this command ends; a launcher that samples does so within 10 s"},
    {0, "sysfs-root", "DIR", "the folder that holds the host's sys, for containers", "", "", true},
};

int run_counters(const Arguments& arguments) {
  const std::string run = arguments.operands().front(), root = arguments.value("sysfs-root");
  if (!lockstep::links::has_links_to_sample(root)) {
    warn(
        "no counter of a link or GPU can be read on this host: in a container, mount the host's /sys and name "
        "it with --sysfs-root");
    return kExitCannotTell;
  }
  std::error_code error;
  if (std::filesystem::exists(run, error) && !std::filesystem::is_directory(run, error))
    return fail(usage_error("is no run directory", run));
  const Interrupt interrupt(Interrupt::Second::kEnds);
  constexpr std::chrono::seconds kLook{1};
  if (!std::filesystem::exists(run, error)) warn("waiting for the run directory " + run);
  while (!std::filesystem::is_directory(run, error))
    if (interrupt.wait(kLook)) return kExitOk;
  if (access(run.c_str(), W_OK) != 0)
    return fail(Error{ErrorCode::kPermission, "is a directory in which this user may write nothing", run});
  const run::ProcessIdentity self = run::own_identity();
  const std::string log = run::link_log_path(run, self);
  const std::string watch_path = run::link_watch_path(run, self);
  std::optional<lockstep::links::HostLock> watch;
  // Before the sampler begins: its first look already finds it held.
  if (arguments.has("watch") &&
      watch.emplace(watch_path).take() == lockstep::links::HostLock::Taken::kImpossible)
    warn("cannot lock " + watch_path + ": counters are sampled no more often than usual");
  lockstep::links::Sampler sampler({root, log, run::link_lock_path(run, self), watch_path},
                                   {self.host, self.boot_id, self.pid});
  warn("counters of this host's links and GPUs go into " + run);
  // A merge removes the directory when the run is over.
  while (!interrupt.wait(kLook) && std::filesystem::is_directory(run, error))
    // Of several that watch, one holds it; when it ends, another does.
    if (watch) watch->take();
  sampler.stop();
  return kExitOk;
}

}  // namespace

const Command counters_command = {
    .name = "counters",
    .summary = "sample the counters of this host's links and GPUs beside a run",
    .description =
        "Writes the counters of this host's network cards, PCIe devices and GPUs into the run directory, as "
        "`lockstep trace` does beside its command: for jobs whose ranks load the capture library without it, "
        "such as those of Slurm or Kubernetes. Start one on each host; where several run, one samples and the "
        "others wait. It waits for a run that does not exist yet, and ends on Ctrl-C, SIGTERM, or when the run "
        "directory is gone. docs/links.md says what `diagnose` makes of the counters.",
    .operands = {.name = "RUN", .help = "the run directory of a job", .least = 1, .most = 1},
    .options = kCountersOptions,
    .run = run_counters,
};

}  // namespace lockstep::cli
