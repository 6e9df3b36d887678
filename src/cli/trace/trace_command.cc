// SPDX-License-Identifier: Apache-2.0
// `trace` runs the user's command with capture in its environment. Wrong options, a missing capture library
// and targets that are not to be replaced are refused before the command starts, with exit code 2. A place
// that cannot be written costs the trace and not the job, unless --require says otherwise. Once the command
// has started its exit code is ours, whatever becomes of the merge.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>

#include "base/text/units.h"
#include "base/unix_time.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/trace/amd_environment.h"
#include "cli/trace/capture_environment.h"
#include "cli/trace/supervisor.h"
#include "cli/trace/tokens.h"
#include "cli/trace/trace_end.h"
#include "links/samples/sampler.h"
#include "run/adopt_run.h"
#include "run/census.h"
#include "run/held_segments.h"
#include "run/missing_processes.h"
#include "run/mode_text.h"
#include "run/process_files.h"
#include "run/small_file.h"
#include "store/store.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

constexpr Option kTraceOptions[] = {
    {'o', "output", "OUT", "the merged trace; an older trace.db there is replaced", "trace.db", "", true},
    {'m', "mode", "MODE",
     "lite and default record the host side, which costs least; deep adds GPU times of each "
     "channel and network steps; sample=K/N is deep for K of every N operations; off records nothing",
     "default", run::kModeChoices},
    {0, "retain", "POLICY",
     "stream[:CAP] keeps everything, up to CAP per process; ring:SIZE keeps the newest", "stream"},
    {0, "dir", "RUN", "use this run directory and keep it (default: beside OUT, removed after a clean merge)",
     "", "", true},
    {0, "keep", "", "keep the run directory"},
    {0, "no-merge", "", "leave the run directory as it is"},
    {0, "require", "", "do not run the command if it cannot be traced"},
    {0, "timeline", "FILE", "also write a timeline for Perfetto; compressed if its name ends in .gz", "", "",
     true},
    {0, "push", "URL#NAME",
     "write what the processes do now to a ClickHouse store every 2 s, for `lockstep diagnose URL#NAME`; "
     "without #NAME the job's id is its name"},
    {0, "sysfs-root", "DIR", "the folder that holds the host's sys, for counters of links in containers", "",
     "", true},
    {0, "json", "", "print the final report as one JSON object on a line of stderr"},
};

// Steps over two characters, so that the second sign of `%%` begins no token.
bool mentions(const std::string& text, std::string_view letters) {
  for (size_t at = text.find('%'); at != std::string::npos && at + 1 < text.size();
       at = text.find('%', at + 2)) {
    if (letters.find(text[at + 1]) != std::string_view::npos) return true;
  }
  return false;
}

// Which launchers of the job share one run directory follows from the names that the user gave.
void share_by_tokens(const std::string& name, run::JobPlace& place) {
  // %p and %r differ between the launchers of one start: each has a run directory of its own and merges by
  // itself.
  if (mentions(name, "pr")) place.launchers_key.clear();
  // Each node has a directory: its launchers share that one and wait for no others.
  if (mentions(name, "hn")) place.launchers = 1;  // how many there are on a node is not known
}

// An option, else the variable that says the same, else what the option is without being given.
struct Setting {
  std::string value, set_by;  // "--mode", "LOCKSTEP_MODE"
  bool given = false;
};
Setting setting(const Arguments& arguments, std::string_view option, const char* variable) {
  const char* set = std::getenv(variable);
  if (!arguments.has(option) && set != nullptr && *set != 0) return {set, variable, true};
  return {arguments.value(option), "--" + std::string(option), arguments.has(option)};
}

Result<void> read_recording(const Arguments& arguments, TraceRequest& request) {
  const auto usage = [](const Setting& of, std::string_view takes) {
    return usage_error(of.set_by + " takes " + std::string(takes) + "; not '" + of.value + "'");
  };
  const Setting mode = setting(arguments, "mode", "LOCKSTEP_MODE"),
                retention = setting(arguments, "retain", "LOCKSTEP_RETAIN");
  const std::optional<run::ModeChoice> chosen = run::parse_mode(mode.value);
  if (!chosen && mode.value.starts_with("sample="))
    return usage(mode, "two numbers in sample=K/N, K at most N, such as sample=1/100");
  if (!chosen) return usage(mode, "lite, default (standard), deep (full), sample=K/N or off");
  if (!trace::is_retention(retention.value))
    return usage(retention, "stream, stream:CAP or ring:SIZE, such as ring:64M");
  request.mode = run::mode_text(*chosen);
  request.retention = retention.value;
  return {};
}

Result<TraceRequest> read_request(const Arguments& arguments, const run::ProcessIdentity& self,
                                  run::JobPlace& place) {
  TraceRequest request;
  LOCKSTEP_TRY(read_recording(arguments, request));
  // A `lockstep trace` around this one sets LOCKSTEP_DIR for its own children; that is no wish of the user.
  const Setting directory = trace::directory_is_of_a_launcher()
                                ? Setting{arguments.value("dir"), "--dir", arguments.has("dir")}
                                : setting(arguments, "dir", "LOCKSTEP_DIR");
  auto expanded = [&](const std::string& text) { return trace::expand_tokens(text, self, place); };
  // Absolute: the processes of the job write into RUN, and may run in other folders.
  auto path = [&](const std::string& named) {
    std::string text = expanded(named);
    std::error_code stays;  // as it was named, where nobody can say in which folder we are
    const fs::path whole = fs::absolute(text, stays);
    return text.empty() ? text : (stays ? fs::path(text) : whole).lexically_normal().string();
  };
  request.output = path(arguments.value("output"));
  request.output_shown = expanded(arguments.value("output"));
  request.timeline = path(arguments.value("timeline"));
  request.run = path(directory.value);
  request.run_is_named = directory.given && !request.run.empty();
  if (request.run.empty()) request.run = fs::path(request.output).replace_extension(".run").string();
  // A name that is in use gets a number appended, which behind a slash would be a folder inside it.
  while (request.run.size() > 1 && request.run.ends_with('/')) request.run.pop_back();
  // The text as the user wrote it: the expanded one has no tokens left.
  share_by_tokens(request.run_is_named ? directory.value : arguments.value("output"), place);
  request.merge = !arguments.has("no-merge");
  request.keep = arguments.has("keep");
  request.json = arguments.has("json");
  request.require = arguments.has("require");
  request.sysfs_root = arguments.value("sysfs-root");
  if (arguments.has("push")) {
    LOCKSTEP_ASSIGN(request.push, push::followed_job("--push", arguments.value("push")));
  }
  request.argv = arguments.operands();
  if (!request.merge && !request.timeline.empty())
    return usage_error("--timeline needs the merge; leave out --no-merge");
  return request;
}

// Better said before a long job than after it.
Result<void> check_targets(const TraceRequest& request) {
  if (!request.merge) return {};
  std::error_code error;
  for (const auto& [file, option] :
       {std::pair(request.output, "--output"), std::pair(request.timeline, "--timeline")}) {
    if (file.empty()) continue;
    std::string folder = fs::path(file).parent_path().string();
    fs::create_directories(folder, error);
    if (access(folder.c_str(), W_OK | X_OK) != 0) {
      return Error{ErrorCode::kPermission,
                   std::string(std::strerror(errno)) + "; name another place with " + option, folder};
    }
  }
  // An older trace.db is replaced; any other file is the user's and may be a slip.
  if (fs::exists(request.output, error) && !store::is_trace_db(request.output)) {
    return usage_error("exists and is not a trace.db; name another file with --output", request.output);
  }
  if (!request.timeline.empty() && fs::exists(request.timeline, error)) {
    return usage_error("exists; remove it, or name another file with --timeline", request.timeline);
  }
  return {};
}

int report_not_started(const std::string& program, int error) {
  // 127 and 126 are what a shell returns for the two cases.
  bool found = error != ENOENT;
  warn(program + ": " +
       (found ? std::string("cannot be executed: ") + std::strerror(error) : "command not found") +
       "; check the command behind the options of lockstep trace");
  return found ? trace::kExitNotExecutable : trace::kExitNotFound;
}

void report_waiting(const trace::Supervisor& supervisor) {
  std::string who;
  size_t count = 0;
  // An orphan of the command becomes our child, as this process is the reaper; its own children do not count.
  for (int64_t child : run::children_of(getpid())) {
    if (supervisor.is_own(child)) continue;
    auto argv = run::split_words(run::read_small(run::proc_path(child, "cmdline"), 4096).value_or(""));
    if (++count <= 3)
      who += (who.empty() ? "" : ", ") + std::to_string(child) + (argv.empty() ? "" : " " + argv[0]);
  }
  warn("the command has ended; waiting for " + plural(count, "process") + " that it left behind (" + who +
       (count > 3 ? ", ..." : "") + "); Ctrl-C stops waiting");
}

int run_without_capture(const std::vector<std::string>& argv) {
  // A plugin that the user's environment names is loaded all the same, and must record nothing.
  setenv("LOCKSTEP_MODE", "off", 1);
  trace::Supervisor supervisor;
  if (int error = supervisor.start(argv); error != 0) return report_not_started(argv[0], error);
  return supervisor.wait_for_command();
}

// The job does not depend on the profiler's disk, unless its user says so.
int run_untraced(const TraceRequest& request, const Error& why) {
  if (request.require) return fail(why);
  warn("NOT TRACED: " + why.message() + "; the command runs anyway (with --require it would not)");
  const int code = run_without_capture(request.argv);
  if (request.json) report_untraced(why, code);
  return code;
}

run::Manifest make_manifest(const TraceRequest& request, const run::ProcessIdentity& self,
                            const run::JobPlace& place) {
  run::Manifest manifest;
  manifest.version = LOCKSTEP_VERSION;
  // Words that look like secrets are left out, as the run directory is often shared.
  manifest.argv = run::kept_words(request.argv);
  manifest.launcher = self;
  manifest.started_ns = unix_now_ns();
  manifest.mode = request.mode;
  manifest.retention = request.retention;
  manifest.output = request.merge ? request.output : "";
  manifest.launchers_key = place.launchers_key;
  manifest.launchers = place.launchers;
  return manifest;
}

// The job ends as it would have without us, whatever becomes of our own work, for want of memory or else.
template <class Work>
void guard(const std::string& what, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    warn(what + ": " + error.what());
  }
}

// Counters of the host's links are read beside the job, by one of its launchers on each host.
void start_sampler(const TraceRequest& request, const run::ProcessIdentity& self,
                   const run::RunDirectory& run, std::optional<links::Sampler>& sampler) {
  const char* set = std::getenv("LOCKSTEP_LINKS");
  if (set != nullptr && std::string_view(set) == "off") return;
  sampler.emplace(
      links::SamplerPlaces{request.sysfs_root, run::link_log_path(run.path(), self),
                           run::link_lock_path(run.path(), self), run::link_watch_path(run.path(), self)},
      links::SampleIdentity{self.host, self.boot_id, self.pid});
}

// In a child. One of a host's launchers is enough; when it ends, the next one goes on.
int follow_host(push::FollowedJob job, const run::ProcessIdentity& self, const std::string& run) {
  const int lock = open(run::follow_lock_path(run, self).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  // Without a lock, several write the same.
  while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR) {
  }
  job.run = run;
  job.until_signal = true;
  return push::follow(job);
}

// The order is fixed. The supervisor comes before all threads, which inherit the signals that it blocks. What
// lies in memory goes into the files before they are counted and merged.
int run_captured(const TraceRequest& request, const run::ProcessIdentity& self, bool expects_hsa,
                 run::RunDirectory& run) {
  trace::Supervisor supervisor;
  const auto end = [&](int code, bool has_started) {
    guard("not merged; the captured data is in " + run.path(), [&] {
      // From here the command needs no signal any more, so Ctrl-C may end the merge.
      supervisor.end_on_signal([&](int) { guard("stopped", [&] { report_stopped(request, run); }); });
      end_trace(request, run, code, has_started);
    });
    return code;
  };
  // Others of the job's launchers may have recorded something, and leave the merge to the last one.
  if (int error = supervisor.start(request.argv); error != 0)
    return end(report_not_started(request.argv[0], error), false);
  if (request.push) supervisor.start_helper([&] { return follow_host(*request.push, self, run.path()); });
  std::optional<run::Census> census;
  std::optional<run::HeldSegments> held;
  guard("cannot watch the job's processes", [&] {
    census.emplace(
        self, [&](int64_t pid) { return supervisor.is_own(pid); }, [&] { run.touch(); });
    held.emplace(run.path());
  });
  std::optional<links::Sampler> sampler;
  guard("cannot sample link counters", [&] { start_sampler(request, self, run, sampler); });
  const int code = supervisor.wait_for_command();
  // False means that a signal ended the waiting; what is there by now is merged all the same.
  supervisor.wait_for_descendants(
      [&] { guard("the command has ended", [&] { report_waiting(supervisor); }); });
  // Before the merge, which attaches the log that it writes.
  if (sampler) sampler->stop();
  guard("could not copy everything from memory into the files of " + run.path(), [&] {
    run::adopt_run(run.path());
    held.reset();
  });
  // Files are whole now, and the merge may remove them.
  if (!supervisor.end_helper()) warn("the store did not take how the job ended within 5 s");
  guard("cannot record which processes there were", [&] {
    if (!census) return;
    census->stop();
    run::CensusReport seen = census->report();
    seen.expects_hsa = expects_hsa;
    run::note_captured(seen, run::process_files(run.path()));
    if (auto written = run::write_census(run.path(), seen); !written) warn(written.error().message());
  });
  return end(code, true);
}

Result<run::RunDirectory> make_run_directory(const TraceRequest& request, const run::ProcessIdentity& self,
                                             const run::JobPlace& place) {
  try {
    return run::RunDirectory::create_or_join(request.run, make_manifest(request, self, place));
  } catch (const std::exception& error) {
    return Error{ErrorCode::kIo, error.what(), request.run};
  }
}

int run_trace(const Arguments& arguments) {
  run::ProcessIdentity self = run::own_identity();
  run::JobPlace place = run::own_job_place();
  auto request = read_request(arguments, self, place);
  if (!request) return fail(request.error());
  // Before libraries and targets are looked at: a job that records nothing needs neither.
  if (request->mode == "off") return run_without_capture(request->argv);
  auto libraries = trace::find_capture_libraries();
  if (!libraries) return fail(libraries.error());
  if (auto checked = check_targets(*request); !checked) {
    return checked.error().code == ErrorCode::kUsage ? fail(checked.error())
                                                     : run_untraced(*request, checked.error());
  }
  auto directory = make_run_directory(*request, self, place);
  if (!directory) return run_untraced(*request, directory.error());
  // A directory is never reused, so a name that is taken gets a number.
  if (request->run_is_named && directory->path() != request->run) {
    warn(request->run + " is in use or holds other files; the run directory is " + directory->path());
  }
  if (std::string other = trace::other_profiler_plugin(*libraries); !other.empty()) {
    if (trace::plugin_to_chain(*libraries).empty())
      warn("NCCL loads only one profiler plugin: using ours (" + libraries->nccl + ") instead of " + other);
    else
      warn("your profiler plugin " + other +
           " is chained behind ours and gets every call (LOCKSTEP_CHAIN=none leaves it out)");
  }
  if (std::string why = trace::no_gpu_times(*libraries); !why.empty())
    warn("no GPU times of kernels: " + why);
  if (std::string why = trace::no_amd_times(*libraries); !why.empty()) warn("AMD kernels: " + why);
  if (std::string why = trace::no_ranges(*libraries); !why.empty()) warn("no ranges of NVTX: " + why);
  trace::set_capture_environment(*libraries, directory->path(), request->mode, request->retention);
  return run_captured(*request, self, trace::expects_hsa(*libraries), *directory);
}

}  // namespace

const Command trace_command = {
    .name = "trace",
    .summary = "run a command and record the communication of all its processes",
    .description =
        "Runs a command with capture switched on for every process that it starts, waits for all of them, "
        "and "
        "merges what they recorded into OUT. The command's arguments, input, output, signals and exit code "
        "pass "
        "through unchanged; lockstep's options end at the first argument that is not an option.\n\n"
        "It works outside and inside torchrun, mpirun and srun: launchers that one mpirun or srun starts share a run directory, which all nodes must see, and the last one to end merges.\n\n"
        "If the run directory or OUT cannot be written, the command runs untraced, and a line that begins "
        "with NOT TRACED says why; "
        "--require makes that an error. Command lines are kept without values whose names contain token, "
        "key, secret or password "
        "(LOCKSTEP_ARGV=all keeps them, LOCKSTEP_ARGV=none keeps no command lines).\n\n"
        "NCCL's log and the dumps of PyTorch's Flight Recorder also go into the run directory and into OUT, where `lockstep diagnose` finds them. Lockstep does not change variables that you have set: NCCL_DEBUG, "
        "NCCL_DEBUG_FILE, NCCL_DEBUG_SUBSYS, TORCH_FR_BUFFER_SIZE, TORCH_FR_DUMP_ON_TIMEOUT, "
        "TORCH_FR_DUMP_TEMP_FILE and the older names of the last three.\n\n"
        "If NCCL_PROFILER_PLUGIN already names a profiler plugin, ours passes every call on to it. "
        "LOCKSTEP_CHAIN=none leaves it out; LOCKSTEP_CHAIN=PATH names another.\n\n"
        "For AMD GPUs, HSA_TOOLS_LIB makes the runtime load our library after those that it already names; LOCKSTEP_HSA=off leaves it out, LOCKSTEP_HSA=copies also records copies, LOCKSTEP_HSA=ranges the ranges of roctx. With LOCKSTEP_HSA=sdk, our library is a client of rocprofiler's SDK instead.\n\n"
        "On each host, one launcher reads the error counters of network ports, interfaces and PCIe, and what NVML reports about GPUs, once a second; LOCKSTEP_LINKS=off leaves that out.\n\n"
        "LOCKSTEP_MODE, LOCKSTEP_RETAIN and LOCKSTEP_DIR are the defaults of --mode, --retain and --dir.\n\n"
        "In OUT, RUN and FILE, %p stands for the launcher's process id, %h for the host, %r for the rank, %n for the rank of the node, %j for the job. All processes share one run directory and one OUT; in LOCKSTEP_DIR without `lockstep trace`, %p is the id of each process.",
    .operands = {.name = "COMMAND [ARGUMENT...]",
                 .help = "the command to run, with its arguments",
                 .least = 1,
                 .most = SIZE_MAX,
                 .runs_command = true},
    .options = kTraceOptions,
    .run = run_trace,
};

}  // namespace lockstep::cli
