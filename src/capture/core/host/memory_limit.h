// SPDX-License-Identifier: Apache-2.0
// How much memory the processes of our control group may have together.
#pragma once
#include <cstdint>

namespace lockstep::capture {

// The least of the group's and of those above it, in bytes; UINT64_MAX: none, or it is not known. `groups` is
// the text of /proc/PID/cgroup; `root` the folder that cgroup file systems are mounted in.
uint64_t memory_limit(const char* groups, const char* root);
uint64_t own_memory_limit();

}  // namespace lockstep::capture
