// SPDX-License-Identifier: Apache-2.0
// Names of process files: `<host>.<pid>.<start>.<source>[.<n>].lks`. A host name may hold dots, a source
// holds letters only.
#pragma once
#include <string_view>

namespace lockstep::format {

// Views of the name that was given. Unchecked: a name is whatever somebody gave a file. `start`: in clock
// ticks since boot.
struct FileName {
  std::string_view host, pid, start;
};

// Of a name without folders. Empty parts: it is no name of ours.
inline FileName split_file_name(std::string_view name) {
  constexpr std::string_view kEnding = ".lks";
  constexpr size_t kNone = std::string_view::npos;
  if (!name.ends_with(kEnding)) return {};
  name.remove_suffix(kEnding.size());
  // The source is the last part with a letter; a number behind it tells files of one process apart.
  const size_t letter = name.find_last_not_of(".0123456789");
  const size_t source = letter == kNone ? kNone : name.rfind('.', letter);
  const size_t start = source == kNone || source == 0 ? kNone : name.rfind('.', source - 1);
  const size_t pid = start == kNone || start == 0 ? kNone : name.rfind('.', start - 1);
  if (pid == kNone) return {};
  return {name.substr(0, pid), name.substr(pid + 1, start - pid - 1),
          name.substr(start + 1, source - start - 1)};
}

}  // namespace lockstep::format
