// SPDX-License-Identifier: Apache-2.0
// Groups lie in one another, and each limits all below it: the least counts. Version 1 and 2 of control
// groups may be mounted together, so both are asked.
#include "capture/core/host/memory_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "segment/small_file.h"

namespace lockstep::capture {
namespace {

constexpr size_t kMostPath = 768;

uint64_t limit_in(const char* path) {
  char text[32];
  text[segment::read_small_file(path, text, sizeof text - 1)] = 0;
  return text[0] >= '0' && text[0] <= '9' ? strtoull(text, nullptr, 10) : UINT64_MAX;  // "max": none
}

// A container often sees its own group as the root, but names it by its path on the host: folders that are
// not there say nothing.
uint64_t least_up_from(const char* root, const char* group, size_t length, const char* file) {
  char path[kMostPath];
  uint64_t least = UINT64_MAX;
  if (strlen(root) + length + strlen(file) + 2 > sizeof path) return least;
  for (;;) {
    while (length > 0 && group[length - 1] == '/') --length;
    snprintf(path, sizeof path, "%s%.*s/%s", root, static_cast<int>(length), group, file);
    const uint64_t limit = limit_in(path);
    if (limit < least) least = limit;
    if (length == 0) return least;
    while (length > 0 && group[length - 1] != '/') --length;
  }
}

bool is_list_with_memory(const char* list, size_t length) {
  constexpr char kWord[] = "memory";
  constexpr size_t kLength = sizeof kWord - 1;
  for (size_t at = 0; at + kLength <= length; ++at) {
    const bool is_whole =
        (at == 0 || list[at - 1] == ',') && (at + kLength == length || list[at + kLength] == ',');
    if (is_whole && memcmp(list + at, kWord, kLength) == 0) return true;
  }
  return false;
}

}  // namespace

uint64_t memory_limit(const char* groups, const char* root) {
  uint64_t least = UINT64_MAX;
  while (*groups != 0) {  // "number:controllers:/path", one a line; version 2 names none
    const char* const end = strchrnul(groups, '\n');
    const char* const list = strchr(groups, ':');
    const char* const path = list == nullptr ? nullptr : strchr(list + 1, ':');
    if (path != nullptr && path < end) {
      const auto list_length = static_cast<size_t>(path - list - 1),
                 length = static_cast<size_t>(end - path - 1);
      uint64_t limit = UINT64_MAX;
      if (list_length == 0) {
        limit = least_up_from(root, path + 1, length, "memory.max");
      } else if (is_list_with_memory(list + 1, list_length)) {
        char mount[kMostPath / 2];
        snprintf(mount, sizeof mount, "%s/memory", root);
        limit = least_up_from(mount, path + 1, length, "memory.limit_in_bytes");
      }
      if (limit < least) least = limit;
    }
    groups = *end == 0 ? end : end + 1;
  }
  return least;
}

uint64_t own_memory_limit() {
  char groups[1024];
  groups[segment::read_small_file("/proc/self/cgroup", groups, sizeof groups - 1)] = 0;
  return memory_limit(groups, "/sys/fs/cgroup");
}

}  // namespace lockstep::capture
