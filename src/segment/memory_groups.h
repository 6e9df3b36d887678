// SPDX-License-Identifier: Apache-2.0
// The control groups that limit the memory of a process: its own and those above it, each of which limits all
// in it. Version 1 and 2 of control groups may be mounted together, so both are walked. For init, not for the
// event path; allocates nothing.
#pragma once
#include <stdio.h>
#include <string.h>

#include <cstddef>

namespace lockstep::segment {

inline constexpr size_t kMostGroupPath = 736;

// Of the group and all above it. A container often sees its own group as the root, but names it by its path
// on the host, so folders may not be there.
template <class Visit>
void each_group_up_from(const char* mount, const char* group, size_t length, bool is_old, Visit& visit) {
  char folder[kMostGroupPath];
  if (strlen(mount) + length + 1 > sizeof folder) return;
  for (;;) {
    while (length > 0 && group[length - 1] == '/') --length;
    snprintf(folder, sizeof folder, "%s%.*s", mount, static_cast<int>(length), group);
    visit(static_cast<const char*>(folder), is_old);
    if (length == 0) return;
    while (length > 0 && group[length - 1] != '/') --length;
  }
}

inline bool is_list_with_memory(const char* list, size_t length) {
  constexpr char kWord[] = "memory";
  constexpr size_t kLength = sizeof kWord - 1;
  for (size_t at = 0; at + kLength <= length; ++at) {
    const bool is_whole =
        (at == 0 || list[at - 1] == ',') && (at + kLength == length || list[at + kLength] == ',');
    if (is_whole && memcmp(list + at, kWord, kLength) == 0) return true;
  }
  return false;
}

// visit(folder, is_old) for each. `groups`: the text of /proc/PID/cgroup, "number:controllers:/path" a line,
// where version 2 names no controllers; `root`: the folder that control groups are mounted in. `is_old`:
// version 1, whose files have other names.
template <class Visit>
void each_memory_group(const char* groups, const char* root, Visit&& visit) {
  while (*groups != 0) {
    const char* const end = strchrnul(groups, '\n');
    const char* const list = strchr(groups, ':');
    const char* const path = list == nullptr ? nullptr : strchr(list + 1, ':');
    if (path != nullptr && path < end) {
      const auto list_length = static_cast<size_t>(path - list - 1),
                 length = static_cast<size_t>(end - path - 1);
      if (list_length == 0) {
        each_group_up_from(root, path + 1, length, false, visit);
      } else if (is_list_with_memory(list + 1, list_length)) {
        char mount[kMostGroupPath / 2];
        snprintf(mount, sizeof mount, "%s/memory", root);
        each_group_up_from(mount, path + 1, length, true, visit);
      }
    }
    groups = *end == 0 ? end : end + 1;
  }
}

}  // namespace lockstep::segment
