// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/memory_limit.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/column_memory.h"
#include "base/temporary_directory.h"
#include "base/text/units.h"

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

// Of the group at this path below `mount` and of all above it, each of which limits all in it. A container
// may see its own group as the root and name it by its path on the host: folders that are not there say
// nothing.
uint64_t least_free_up_from(const std::string& mount, std::string path, bool is_old) {
  uint64_t free = kUnlimited;
  for (;;) {
    const std::string folder = mount + path + '/';
    const uint64_t most = number_in(folder + (is_old ? "memory.limit_in_bytes" : "memory.max"), kUnlimited);
    const uint64_t used = number_in(folder + (is_old ? "memory.usage_in_bytes" : "memory.current"), 0);
    if (most != kUnlimited) free = std::min(free, most - std::min(most, used));
    const size_t last = path.rfind('/');
    if (last == std::string::npos) return free;
    path.resize(last);
  }
}

bool names_memory(const std::string& controllers) {
  return (',' + controllers + ',').find(",memory,") != std::string::npos;
}

}  // namespace

// Version 2 names no controllers; of version 1 the memory controller counts where it has its usual place.
uint64_t free_in_control_groups(const std::string& groups, const std::string& root) {
  uint64_t free = kUnlimited;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_old = names_memory(controllers);
    if (is_old || controllers.empty())
      free = std::min(free,
                      least_free_up_from(root + (is_old ? "/memory" : ""), line.substr(second + 1), is_old));
  }
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
      return Error{
          ErrorCode::kUsage,
          "--memory takes a number of bytes, with K, M, G or T behind it for more, not '" + text + "'",
          {}};
    }
    bytes = *given;
  }
  set_column_limit({.bytes = bytes, .directory = temporary_folder()});
  return {};
}

}  // namespace lockstep::cli
