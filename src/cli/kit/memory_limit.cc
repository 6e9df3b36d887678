// SPDX-License-Identifier: Apache-2.0
// Decides how much memory columns may take before they lie in files: half of what is free, as other processes
// and the rest of the program need some too. In a container the machine's figure is not the limit, so the
// least that any control group above the process leaves counts. What cannot be read limits nothing.
#include "cli/kit/memory_limit.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/column_memory.h"
#include "base/temporary_directory.h"
#include "base/text/units.h"
#include "segment/memory_groups.h"

namespace lockstep::cli {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// The number in a file of one word; `otherwise` where there is none, as in "max".
uint64_t number_in(const std::string& path, uint64_t otherwise) {
  uint64_t number = 0;
  std::ifstream file(path);
  return file >> number ? number : otherwise;
}

uint64_t free_in_machine() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kib = 0;
    if (words >> name >> kib && name == "MemAvailable:") return kib * 1024;
  }
  return kUnlimited;
}

}  // namespace

uint64_t free_in_control_groups(const std::string& groups, const std::string& root) {
  uint64_t free = kUnlimited;
  segment::each_memory_group(groups.c_str(), root.c_str(), [&](const std::string& folder, bool is_old) {
    // Version 1 and 2 of control groups name their files differently; "max" is no number and thus no limit.
    const uint64_t most = number_in(folder + (is_old ? "/memory.limit_in_bytes" : "/memory.max"), kUnlimited);
    const uint64_t used = number_in(folder + (is_old ? "/memory.usage_in_bytes" : "/memory.current"), 0);
    if (most != kUnlimited) free = std::min(free, most - std::min(most, used));
  });
  return free;
}

Result<void> limit_memory(const Arguments& arguments) {
  std::ostringstream groups;
  groups << std::ifstream("/proc/self/cgroup").rdbuf();
  uint64_t bytes = std::min(free_in_machine(), free_in_control_groups(groups.str(), "/sys/fs/cgroup")) / 2;
  if (arguments.has(kMemoryOption.name)) {
    const std::string text = arguments.value(kMemoryOption.name);
    const std::optional<uint64_t> given = parse_bytes(text);
    if (!given) {
      return usage_error("--memory takes a number of bytes, with K, M, G or T behind it for more, not '" +
                         text + "'");
    }
    bytes = *given;
  }
  set_column_limit({.bytes = bytes, .directory = temporary_folder()});
  return {};
}

}  // namespace lockstep::cli
