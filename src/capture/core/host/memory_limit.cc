// SPDX-License-Identifier: Apache-2.0
// A segment's pages count for the control group of the process, and each group on the way up bounds all below
// it. So the strictest decides; a file that is not there limits nothing. Version 1 writes a number near 2^63
// where there is no limit, which limits nothing either.
#include "capture/core/host/memory_limit.h"

#include <stdio.h>
#include <stdlib.h>

#include "segment/memory_groups.h"
#include "segment/small_file.h"

namespace lockstep::capture {
namespace {

uint64_t limit_in(const char* path) {
  char text[32];
  text[segment::read_small_file(path, text, sizeof text - 1)] = 0;
  return text[0] >= '0' && text[0] <= '9' ? strtoull(text, nullptr, 10) : UINT64_MAX;  // "max": none
}

}  // namespace

uint64_t memory_limit(const char* groups, const char* root) {
  uint64_t least = UINT64_MAX;
  segment::each_memory_group(groups, root, [&](const char* folder, bool is_old) {
    char path[segment::kMostGroupPath + 32];
    snprintf(path, sizeof path, "%s/%s", folder, is_old ? "memory.limit_in_bytes" : "memory.max");
    const uint64_t limit = limit_in(path);
    if (limit < least) least = limit;
  });
  return least;
}

uint64_t own_memory_limit() {
  char groups[1024];
  groups[segment::read_small_file("/proc/self/cgroup", groups, sizeof groups - 1)] = 0;
  return memory_limit(groups, "/sys/fs/cgroup");
}

}  // namespace lockstep::capture
