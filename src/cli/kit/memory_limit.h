// SPDX-License-Identifier: Apache-2.0
// How much memory the columns of a run may take before they lie in files: --memory, else half of what the
// machine and the control group have left.
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/kit/arguments.h"

namespace lockstep::cli {

inline constexpr Option kMemoryOption = {
    .letter = 0,
    .name = "memory",
    .value = "SIZE",
    .help = "keep what is larger than this in files in TMPDIR, else in /var/tmp",
    .fallback = "half of what is free"};

// What the control groups of a process leave it, each and all above it: the least, in bytes. `groups`: the
// text of /proc/PID/cgroup; `root`: the folder that control groups are mounted in.
uint64_t free_in_control_groups(const std::string& groups, const std::string& root);

// Of a command that has kMemoryOption; to be called before anything is read.
Result<void> limit_memory(const Arguments& arguments);

}  // namespace lockstep::cli
