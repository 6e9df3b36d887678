// SPDX-License-Identifier: Apache-2.0
// The SDK aborts a process for which it cannot load a library of its list, so what others have put there is
// looked for first.
#include "cli/trace/amd_environment.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include "format/cuda_setting.h"
#include "format/hsa_setting.h"

namespace lockstep::cli::trace {
namespace {

constexpr const char *kHsaTools = "HSA_TOOLS_LIB", *kOldTools = "HSA_TOOLS_ROCPROFILER_V1_TOOLS",
                     *kSdkTools = "ROCP_TOOL_LIBRARIES", *kDeviceQueues = "DEBUG_CLR_AQL_DEV_QUEUE";

std::vector<std::string> words_of(const char* variable, char separator) {
  const char* set = std::getenv(variable);
  std::vector<std::string> found;
  std::istringstream words(set != nullptr ? set : "");
  for (std::string word; std::getline(words, word, separator);) {
    if (!word.empty()) found.push_back(word);
  }
  return found;
}

// One of the two lists: its variable, what stands between its paths, and our library for it.
struct ToolList {
  const char* variable;
  char separator;
  const std::string& ours;

  std::vector<std::string> paths() const { return words_of(variable, separator); }
  // Another copy of our library is ours too, as an installed one is beside a build.
  bool is_ours(const std::string& path) const {
    std::error_code error;
    return std::filesystem::path(path).filename() == std::filesystem::path(ours).filename() ||
           std::filesystem::equivalent(path, ours, error);
  }
  // A path that holds the separator would be two.
  bool can_hold_ours() const { return ours.find(separator) == std::string::npos; }
  void add_ours() const {
    std::string value;
    bool is_there = false;
    for (const std::string& path : paths()) {
      value += (value.empty() ? "" : std::string(1, separator)) + path;
      is_there |= is_ours(path);
    }
    if (!is_there) value += (value.empty() ? "" : std::string(1, separator)) + ours;
    // The SDK takes no path that no colon follows.
    if (separator == ':') value += separator;
    setenv(variable, value.c_str(), 1);
  }
  void remove_ours() const {
    std::string value;
    for (const std::string& path : paths()) {
      if (!is_ours(path)) value += (value.empty() ? "" : std::string(1, separator)) + path;
    }
    if (std::getenv(variable) != nullptr) setenv(variable, value.c_str(), 1);
  }
};
ToolList hsa_tools(const CaptureLibraries& libraries) { return {kHsaTools, ' ', libraries.hsa}; }
ToolList sdk_tools(const CaptureLibraries& libraries) { return {kSdkTools, ':', libraries.rocp}; }

// As the SDK reads its switches.
bool is_switched_off(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return false;
  for (const char* off : {"0", "off", "false", "no", "n", "f"}) {
    if (strcasecmp(value, off) == 0) return true;
  }
  return false;
}

constexpr const char *kForce = "ROCPROFILER_REGISTER_FORCE_LOAD", *kEnabled = "ROCPROFILER_REGISTER_ENABLED";

// Only where it is asked for: the SDK ends a process that cannot load a named library, as in a container
// without our path.
bool uses_sdk(const CaptureLibraries& libraries) {
  if (libraries.rocp.empty()) return false;
  return format::has_word(std::getenv(format::kHsaSetting), format::kHsaSdk);
}

std::string missing_file(const ToolList& list) {
  std::error_code error;
  for (const std::string& path : list.paths()) {
    if (!list.is_ours(path) && path.find('/') != std::string::npos && !std::filesystem::exists(path, error))
      return std::string(list.variable) + " names " + path + ", which does not exist";
  }
  return {};
}

// Capture passes over it: who writes "OFF" would not learn that kernels are recorded.
std::string unknown_word() {
  for (const std::string& word : words_of(format::kHsaSetting, ',')) {
    constexpr std::string_view kKnown[] = {
        format::kHsaOff, format::kHsaCopies, format::kHsaNoArguments, format::kHsaDeviceArguments,
        format::kHsaSdk, format::kHsaRanges, format::kHsaPatched,     format::kHsaPrint};
    if (std::find(std::begin(kKnown), std::end(kKnown), word) == std::end(kKnown))
      return std::string(format::kHsaSetting) + " has a word that nobody knows, and that is ignored: \"" +
             word + '"';
  }
  return {};
}

std::string no_sdk_times(const ToolList& list) {
  if (!list.can_hold_ours()) return std::string(kSdkTools) + " cannot hold a path with a colon: " + list.ours;
  for (const char* name : {kEnabled, kForce}) {
    if (is_switched_off(name))
      return std::string(name) + " is " + std::getenv(name) + ": rocprofiler's SDK will not load our library";
  }
  return missing_file(list);
}

}  // namespace

// From ROCm 6.1 on the runtime loads no tools in a process that has rocprofiler's SDK, unless kOldTools asks
// for it; the SDK itself sets that to 0 where it is not set.
void set_amd_environment(const CaptureLibraries& libraries) {
  if (!expects_hsa(libraries)) return;
  const ToolList hsa = hsa_tools(libraries), sdk = sdk_tools(libraries);
  if (uses_sdk(libraries)) {
    if (!sdk.can_hold_ours()) return;
    hsa.remove_ours();
    return sdk.add_ours();
  }
  if (!hsa.can_hold_ours()) return;
  hsa.add_ours();
  // Not over what the user has set: 0 may be meant, and no_amd_times() warns of it.
  setenv(kOldTools, "1", 0);
  // A queue of HIP's that lies in GPU memory cannot be intercepted.
  setenv(kDeviceQueues, "0", 0);
}

bool expects_hsa(const CaptureLibraries& libraries) {
  return !libraries.hsa.empty() && !format::has_word(std::getenv(format::kHsaSetting), format::kHsaOff);
}

std::string no_amd_times(const CaptureLibraries& libraries) {
  if (!expects_hsa(libraries)) return {};
  if (std::string unknown = unknown_word(); !unknown.empty()) return unknown;
  if (uses_sdk(libraries)) return no_sdk_times(sdk_tools(libraries));
  const ToolList list = hsa_tools(libraries);
  if (!list.can_hold_ours())
    return std::string(kHsaTools) + " cannot hold a path with a space: " + libraries.hsa;
  if (std::string missing = missing_file(list); !missing.empty()) return missing;
  for (const std::string& tool : list.paths()) {
    if (!list.is_ours(tool))
      return std::string(kHsaTools) + " also names " + tool +
             ": if that times kernels, ours records launches only";
  }
  if (is_switched_off(kOldTools))
    return std::string(kOldTools) + " is " + std::getenv(kOldTools) +
           ": a process with rocprofiler's SDK will not load our library";
  if (std::getenv(kDeviceQueues) != nullptr && !is_switched_off(kDeviceQueues))
    return std::string(kDeviceQueues) + " is " + std::getenv(kDeviceQueues) +
           ": kernels on queues in GPU memory are not recorded";
  return {};
}

}  // namespace lockstep::cli::trace
