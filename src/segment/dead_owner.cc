// SPDX-License-Identifier: Apache-2.0
// A pid is used again, so a live one proves nothing by itself: the start time in /proc/PID/stat has to fit,
// too.
#include "segment/dead_owner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "segment/process_stat.h"

namespace lockstep::segment {
namespace {

bool is_here(const format::FileHeader& header) {
  unsigned char boot_id[16];
  read_boot_id(boot_id);
  static_assert(sizeof boot_id == sizeof header.boot_id);
  constexpr unsigned char kUnknown[sizeof boot_id] = {};
  return memcmp(boot_id, kUnknown, sizeof boot_id) != 0 &&
         memcmp(boot_id, header.boot_id, sizeof boot_id) == 0 && header.pid_namespace != 0 &&
         own_pid_namespace() == header.pid_namespace;
}

}  // namespace

bool has_gone(const format::FileHeader& header) {
  if (!is_here(header)) return false;
  if (kill(header.pid, 0) != 0 && errno == ESRCH) return true;
  char path[48];
  snprintf(path, sizeof path, "/proc/%d/stat", header.pid);
  ProcessStat stat;
  return read_process_stat(path, &stat) && (stat.start_ticks != header.start_ticks || stat.has_ended());
}

}  // namespace lockstep::segment
