// SPDX-License-Identifier: Apache-2.0
// Capture reaches a job through environment variables alone, since launchers such as torchrun, mpirun and
// srun pass them on to every process. NCCL, CUDA and NVTX each load one library that a variable names. A
// foreign profiler plugin is chained; another foreign library stays, and is named as the reason why times or
// ranges are missing. AMD's runtime and SDK take lists (amd_environment.h).
#include "cli/trace/capture_environment.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "cli/trace/amd_environment.h"
#include "cli/trace/tokens.h"
#include "format/cuda_setting.h"
#include "run/run_directory.h"

namespace lockstep::cli::trace {

namespace {

constexpr const char* kOwnDirectory = "LOCKSTEP_TRACE_DIR";
constexpr std::string_view kLogPrefix = "nccl.", kLogSuffix = ".log", kDumpPrefix = "flight_recorder_";

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0;
}

// Who asks for NCCL's log himself wants it where he has it, and with what it has. Ours is to report hardware
// and connections, too, which NCCL leaves out unless asked; TUNING is a line for each operation.
void set_log_environment(const std::string& run, const std::string& mode) {
  if (is_set("NCCL_DEBUG") || is_set("NCCL_DEBUG_FILE")) return;
  setenv("NCCL_DEBUG", "INFO", 1);
  if (!is_set("NCCL_DEBUG_SUBSYS")) {
    const std::string subsystems = "INIT,BOOTSTRAP,ENV,GRAPH,NET";
    setenv("NCCL_DEBUG_SUBSYS", (mode == "deep" ? subsystems + ",TUNING" : subsystems).c_str(), 1);
  }
  // NCCL expands %h and %p in every process, so the run's own percent signs are doubled.
  setenv("NCCL_DEBUG_FILE",
         (protect_tokens(run) + "/" + std::string(kLogPrefix) + "%h.%p" + std::string(kLogSuffix)).c_str(),
         1);
}

// Both names of each variable: they changed between releases.
void set_dump_environment(const std::string& run) {
  const std::string prefix = run + "/" + std::string(kDumpPrefix);
  const struct {
    const char* name;
    const char* older;
    const char* value;
  } variables[] = {
      {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"},
      {"TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT", "1"},
      {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", prefix.c_str()},
  };
  for (const auto& variable : variables) {
    // PyTorch reads whichever it knows, so one that is set by either name is the user's.
    if (is_set(variable.name) || is_set(variable.older)) continue;
    setenv(variable.name, variable.value, 1);
    setenv(variable.older, variable.value, 1);
  }
}

bool is_cuda_off() { return format::has_word(std::getenv(format::kCudaSetting), format::kCudaOff); }

bool are_ranges_asked_for(const CaptureLibraries& libraries) {
  return format::asks_for(std::getenv(format::kCudaSetting), format::kCudaRanges) && !libraries.cuda.empty();
}

// A variable that names a library to load, as the user, or a tool around us, has set it, if that is another
// one than ours; else empty.
std::string other_injection(const char* variable, const CaptureLibraries& libraries) {
  const char* set = std::getenv(variable);
  if (set == nullptr || *set == 0) return {};
  std::error_code error;
  // Another copy of our library is ours too, as an installed one is beside a build.
  if (std::filesystem::path(set).filename() == "liblockstep-cuda.so" ||
      std::filesystem::equivalent(set, libraries.cuda, error))
    return {};
  return set;
}

std::string preloaded() {
  const char* paths = std::getenv("LD_PRELOAD");
  return paths != nullptr ? paths : "";
}

// A copy of it that is preloaded already stays the one.
std::string cuda_library(const CaptureLibraries& libraries) {
  const std::string preload = preloaded();
  std::string ours = libraries.cuda;
  for (size_t at = 0; at < preload.size();) {
    // The loader takes blanks as well as colons between names.
    const size_t end = std::min(preload.find_first_of(": ", at), preload.size());
    const std::string path = preload.substr(at, end - at);
    if (std::filesystem::path(path).filename() == "liblockstep-cuda.so") ours = path;
    at = end + 1;
  }
  return ours;
}

// Both: CUDA starts the library by the one, and by the other it comes before libcupti in the loader's search,
// so that profilers in the job keep their records.
void set_cuda_environment(const CaptureLibraries& libraries) {
  // A foreign injected library stays; trace says that GPU times will be missing.
  if (is_cuda_off() || libraries.cuda.empty() || !no_gpu_times(libraries).empty()) return;
  const std::string ours = cuda_library(libraries);
  std::string preload = preloaded();
  if (ours == libraries.cuda && preload.find(ours) == std::string::npos)
    preload += (preload.empty() ? "" : ":") + ours;
  setenv("CUDA_INJECTION64_PATH", ours.c_str(), 1);
  setenv("LD_PRELOAD", preload.c_str(), 1);
}

}  // namespace

void set_capture_environment(const CaptureLibraries& libraries, const std::string& run,
                             const std::string& mode, const std::string& retention) {
  // Read before the next line replaces NCCL_PROFILER_PLUGIN.
  if (const std::string chained = plugin_to_chain(libraries); !chained.empty())
    setenv("LOCKSTEP_CHAIN", chained.c_str(), 1);
  setenv("NCCL_PROFILER_PLUGIN", libraries.nccl.c_str(), 1);
  if (!libraries.api.empty()) setenv("LOCKSTEP_LIBRARY", libraries.api.c_str(), 1);
  set_cuda_environment(libraries);
  set_amd_environment(libraries);
  if (are_ranges_asked_for(libraries) && no_ranges(libraries).empty())
    setenv("NVTX_INJECTION64_PATH", cuda_library(libraries).c_str(), 1);
  setenv("LOCKSTEP_DIR", protect_tokens(run).c_str(), 1);
  // Equal to LOCKSTEP_DIR where a launcher set that; see directory_is_of_a_launcher().
  setenv(kOwnDirectory, protect_tokens(run).c_str(), 1);
  setenv("LOCKSTEP_MODE", mode.c_str(), 1);
  setenv("LOCKSTEP_RETAIN", retention.c_str(), 1);
  set_log_environment(run, mode);
  set_dump_environment(run);
}

bool directory_is_of_a_launcher() {
  const char* set = std::getenv("LOCKSTEP_DIR");
  const char* own = std::getenv(kOwnDirectory);
  return set != nullptr && own != nullptr && std::string_view(set) == own;
}

std::vector<std::string> other_tools_files(const std::string& run) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(run, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::error_code ignored;
    if ((name.starts_with(kDumpPrefix) || (name.starts_with(kLogPrefix) && name.ends_with(kLogSuffix))) &&
        entry->is_regular_file(ignored))
      files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> files_to_attach(const std::string& run) {
  std::vector<std::string> files = other_tools_files(run);
  const std::vector<std::string> logs = run::link_logs(run);
  files.insert(files.end(), logs.begin(), logs.end());
  return files;
}

std::string no_gpu_times(const CaptureLibraries& libraries) {
  if (is_cuda_off() || libraries.cuda.empty()) return {};
  if (const std::string other = other_injection("CUDA_INJECTION64_PATH", libraries); !other.empty())
    return "CUDA loads only one injected library, and CUDA_INJECTION64_PATH names " + other;
  if (libraries.cuda.find_first_of(": ") != std::string::npos)
    return "LD_PRELOAD cannot hold a path with a space or a colon: " + libraries.cuda;
  return {};
}

std::string no_ranges(const CaptureLibraries& libraries) {
  if (!are_ranges_asked_for(libraries)) return {};
  const std::string other = other_injection("NVTX_INJECTION64_PATH", libraries);
  return other.empty() ? other
                       : "NVTX loads only one injected library, and NVTX_INJECTION64_PATH names " + other;
}

std::string other_profiler_plugin(const CaptureLibraries& libraries) {
  const char* set = std::getenv("NCCL_PROFILER_PLUGIN");
  if (set == nullptr || *set == 0 || strcasecmp(set, "none") == 0) return {};
  std::string plugin = set;
  std::error_code error;
  // NCCL also takes the middle of a library's name: "x" stands for libnccl-profiler-x.so.
  const std::filesystem::path file = std::filesystem::path(plugin).filename();
  if (plugin == "lockstep" || file == "libnccl-profiler-lockstep.so" || file == "liblockstep-nccl.so" ||
      std::filesystem::equivalent(plugin, libraries.nccl, error)) {
    return {};
  }
  return plugin;
}

std::string plugin_to_chain(const CaptureLibraries& libraries) {
  if (std::getenv("LOCKSTEP_CHAIN") != nullptr) return {};
  std::string plugin = other_profiler_plugin(libraries);
  // To NCCL any beginning of this word means a plugin in the program itself.
  if (strncasecmp(plugin.c_str(), "STATIC_PLUGIN", plugin.size()) == 0) return {};
  return plugin;
}

bool is_retention(const std::string& text) {
  if (text == "stream") return true;
  size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  std::string kind = text.substr(0, colon), size = text.substr(colon + 1);
  if (kind != "stream" && kind != "ring") return false;
  if (size.empty() || size[0] < '1' || size[0] > '9') return false;
  size_t digits = size.find_first_not_of("0123456789");
  // 18 digits fit into 64 bits, as do 9 digits of G.
  if (digits == std::string::npos) return size.size() <= 18;
  return digits + 1 == size.size() && digits <= 9 &&
         std::string("KMGkmg").find(size[digits]) != std::string::npos;
}

}  // namespace lockstep::cli::trace
