// SPDX-License-Identifier: Apache-2.0
// Facts about processes from /proc, and what the environment of a process says of its place in a job.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::run {

// "/proc/4711/maps"
std::string proc_path(int64_t pid, const char* name);

// Who a process is: a pid alone is reused, and is not unique over hosts and containers.
struct ProcessIdentity {
  std::string host;
  std::string boot_id;  // hex
  uint64_t pid_namespace = 0;
  int64_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/<pid>/stat
};

// Of this process. "unknown" and 0 stand for what the system does not say. Any thread.
ProcessIdentity own_identity();

struct ProcessStat {
  int64_t parent = 0;
  uint64_t start_ticks = 0;
  bool zombie = false;      // ended, all its threads
  bool main_ended = false;  // its main thread has; others may go on, or be about to die of the same signal
  bool stopped = false;     // by a signal or a debugger
};
// Nothing if there is no such process.
std::optional<ProcessStat> read_stat(int64_t pid);
// Whether the process still lives; nothing if it cannot be seen from here (another host or container).
std::optional<bool> is_alive(const ProcessIdentity& process);
// The same of a launcher, which merges in its main thread: without that one it is dead.
std::optional<bool> is_alive_launcher(const ProcessIdentity& process);
// Of all its threads, in no order; none once it has ended.
std::vector<int64_t> children_of(int64_t pid);
// NUL-separated text of /proc as words.
std::vector<std::string> split_words(const std::string& text);
// What may be kept of a command line (format/redact_words.h), as LOCKSTEP_ARGV of this program wants it.
std::vector<std::string> kept_words(const std::vector<std::string>& words);

// A process' place in its job, from the variables of torchrun, Open MPI, Slurm and PMI. -1 unknown.
struct JobPlace {
  int64_t rank = -1, world = -1, node_rank = -1;
  std::string job;  // job id; empty unknown
  // For one of several launchers that a job starter began together: what they have in common, and how many
  // they are.
  std::string launchers_key;
  int64_t launchers = 1;
};
using Lookup = std::function<const char*(const char* name)>;
JobPlace job_place(const Lookup& environment);
JobPlace own_job_place();

}  // namespace lockstep::run
