// SPDX-License-Identifier: Apache-2.0
// Variables of several starters may be set at once, as one may have begun the other. The innermost is asked
// first, and the others fill in what it leaves open.
#include "run/process_info.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "format/redact_words.h"
#include "run/small_file.h"
#include "segment/process_stat.h"

namespace lockstep::run {
namespace {

int64_t number(const char* text) {
  if (text == nullptr) return -1;
  int64_t value = -1;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc{} && value >= 0 ? value : -1;
}

// One starter's variables; nullptr where it has none. The capture library reads the same ones in the same
// order.
struct Variables {
  const char *rank, *world, *node_rank, *job;
};
constexpr Variables kStarters[] = {
    {"RANK", "WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_RUN_ID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr, "PMIX_NAMESPACE"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_NODEID", "SLURM_JOB_ID"},
    {"PMI_RANK", "PMI_SIZE", nullptr, "PMI_JOBID"},
    {"PMIX_RANK", nullptr, nullptr, nullptr},
};

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

// Launchers that one starter began together see the same step, name space or rendezvous. The innermost
// starter is the one that began this launcher, so torchrun comes before srun.
void read_launchers(const Lookup& environment, JobPlace& place) {
  auto found = [&](std::string key, int64_t count) {
    place.launchers_key = std::move(key);
    place.launchers = count > 0 ? count : 1;
  };
  if (environment("TORCHELASTIC_RUN_ID") != nullptr && environment("RANK") != nullptr) {
    found("torchrun:" + text_of(environment("TORCHELASTIC_RUN_ID")) + ":" +
              text_of(environment("MASTER_ADDR")) + ":" + text_of(environment("MASTER_PORT")) + ":" +
              text_of(environment("TORCHELASTIC_RESTART_COUNT")),
          number(environment("WORLD_SIZE")));
  } else if (environment("OMPI_COMM_WORLD_RANK") != nullptr) {
    const char* job = environment("PMIX_NAMESPACE");
    if (job == nullptr) job = environment("OMPI_MCA_ess_base_jobid");
    found("openmpi:" + text_of(job), number(environment("OMPI_COMM_WORLD_SIZE")));
    // Ranks of an unknown job: two jobs on one host would take each other for one.
    if (job == nullptr) place.launchers_key.clear();
  } else if (environment("SLURM_STEP_ID") != nullptr && environment("SLURM_JOB_ID") != nullptr) {
    // A batch script has a job but no step: its launcher is alone.
    found("slurm:" + text_of(environment("SLURM_JOB_ID")) + "." + text_of(environment("SLURM_STEP_ID")),
          number(environment("SLURM_STEP_NUM_TASKS")));
  } else if (environment("PMI_JOBID") != nullptr) {
    found("pmi:" + text_of(environment("PMI_JOBID")), number(environment("PMI_SIZE")));
  }
}

std::optional<bool> has_not(const ProcessIdentity& process, bool ProcessStat::*ended) {
  // Read once: neither boot nor pid namespace of this process can change.
  static const ProcessIdentity kSelf = own_identity();
  if (process.boot_id != kSelf.boot_id || process.pid_namespace != kSelf.pid_namespace) return std::nullopt;
  auto stat = read_stat(process.pid);
  return stat && stat->start_ticks == process.start_ticks && !((*stat).*ended);
}

}  // namespace

std::string proc_path(int64_t pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

ProcessIdentity own_identity() {
  ProcessIdentity self;
  char host[256] = {};
  self.host = gethostname(host, sizeof host - 1) == 0 && host[0] != 0 ? host : "unknown";
  for (char c : read_small("/proc/sys/kernel/random/boot_id").value_or("")) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) self.boot_id += c;
  }
  struct stat status {};
  if (stat("/proc/self/ns/pid", &status) == 0) self.pid_namespace = status.st_ino;
  self.pid = getpid();
  if (auto own = read_stat(self.pid)) self.start_ticks = own->start_ticks;
  return self;
}

std::optional<ProcessStat> read_stat(int64_t pid) {
  segment::ProcessStat read;
  if (!segment::read_process_stat(proc_path(pid, "stat").c_str(), &read)) return std::nullopt;
  ProcessStat stat;
  stat.parent = read.parent;
  stat.start_ticks = read.start_ticks;
  stat.zombie = read.has_ended();
  stat.main_ended = read.state == 'Z' || read.state == 'X';
  stat.stopped = read.state == 'T' || read.state == 't';
  return stat;
}

// The start time tells a process from a later one with the same number.
std::optional<bool> is_alive(const ProcessIdentity& process) {
  return has_not(process, &ProcessStat::zombie);
}

std::optional<bool> is_alive_launcher(const ProcessIdentity& process) {
  return has_not(process, &ProcessStat::main_ended);
}

std::vector<int64_t> children_of(int64_t pid) {
  std::vector<int64_t> children;
  std::string tasks = proc_path(pid, "task");
  DIR* directory = opendir(tasks.c_str());
  if (directory == nullptr) return children;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    // Each thread has children of its own.
    std::string list = read_small(tasks + "/" + entry->d_name + "/children").value_or("");
    const char* at = list.data();
    const char* end = at + list.size();
    while (at < end) {
      int64_t child = 0;
      auto [next, error] = std::from_chars(at, end, child);
      if (error != std::errc{}) break;
      children.push_back(child);
      at = next + 1;
    }
  }
  closedir(directory);
  return children;
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\0', at);
    if (end == std::string::npos) end = text.size();
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<std::string> kept_words(const std::vector<std::string>& words) {
  const char* keep = std::getenv(format::kArgvSetting);
  if (keep != nullptr && keep == std::string_view(format::kArgvAll)) return words;
  if (keep != nullptr && keep == std::string_view(format::kArgvNone)) return {};
  std::string bytes;
  for (const std::string& word : words) bytes += word + '\0';
  bytes.resize(format::redact_words(bytes.data(), bytes.size()));
  return split_words(bytes);
}

JobPlace job_place(const Lookup& environment) {
  JobPlace place;
  auto take = [&](int64_t& field, const char* name) {
    if (field < 0 && name != nullptr) field = number(environment(name));
  };
  for (const Variables& v : kStarters) {
    if (number(environment(v.rank)) < 0) continue;
    take(place.rank, v.rank);
    take(place.world, v.world);
    take(place.node_rank, v.node_rank);
    if (place.job.empty() && v.job != nullptr) place.job = text_of(environment(v.job));
  }
  // "none" is torchrun's id where nobody gave one.
  if (place.job.empty() || place.job == "none") {
    if (const char* job = environment("SLURM_JOB_ID")) place.job = job;
  }
  read_launchers(environment, place);
  return place;
}

JobPlace own_job_place() {
  return job_place([](const char* name) { return std::getenv(name); });
}

}  // namespace lockstep::run
