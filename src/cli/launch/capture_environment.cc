// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/capture_environment.h"

#include <cstdlib>
#include <filesystem>

#include "cli/launch/tokens.h"

namespace lockstep::cli::launch {

void set_capture_environment(const CaptureLibraries& libraries, const std::string& run,
                             const std::string& mode, const std::string& retention) {
  setenv("NCCL_PROFILER_PLUGIN", libraries.nccl.c_str(), 1);
  if (!libraries.api.empty()) setenv("LOCKSTEP_LIBRARY", libraries.api.c_str(), 1);
  setenv("LOCKSTEP_DIR", protect_tokens(run).c_str(), 1);
  setenv("LOCKSTEP_MODE", mode.c_str(), 1);
  setenv("LOCKSTEP_RETAIN", retention.c_str(), 1);
}

std::string other_profiler_plugin(const CaptureLibraries& libraries) {
  const char* set = std::getenv("NCCL_PROFILER_PLUGIN");
  if (set == nullptr || *set == 0) return {};
  std::string plugin = set;
  std::error_code error;
  // NCCL also takes the middle of a library's name: "x" stands for libnccl-profiler-x.so.
  if (std::filesystem::path(plugin).filename() == "liblockstep-nccl.so" ||
      std::filesystem::equivalent(plugin, libraries.nccl, error)) {
    return {};
  }
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
  if (digits == std::string::npos) return size.size() <= 18;
  return digits + 1 == size.size() && digits <= 9 &&
         std::string("KMGkmg").find(size[digits]) != std::string::npos;
}

}  // namespace lockstep::cli::launch
