// SPDX-License-Identifier: Apache-2.0
// Names for files and folders that appear under their own name only when they are whole. Until then they lie
// beside it as
//
//   TARGET.partial-HOST-NAMESPACE-PID
//
// where NAMESPACE numbers the pid namespace, so that the names of different hosts and containers differ. A
// process that is killed leaves its file; the next one that writes the same target on the same host removes
// it.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

// The name under which this process writes `target`. All of these take relative and absolute paths, on any
// thread; what cannot be removed stays without a word.
std::string partial_path(const std::string& target);
// Removes the partial files of `target`, and what SQLite keeps beside them, whose process was in this host's
// and this pid namespace and is gone. What other hosts, containers and living processes write stays.
void remove_stale_partials(const std::string& target);
// Removes what this process has written of `target`.
void remove_own_partials(const std::string& target);
// A descriptor of a new, empty file to be written; what had the name is gone, and a link that somebody put
// there is not followed: such names can be guessed. An error: -1 and errno.
int create_new_file(const std::string& path, unsigned mode);
// All of it, however often the system interrupts; false and errno where that failed.
bool write_all(int file, std::string_view text);
// The file has either this text or what it had before: of what failed, or was killed, nothing is left.
Result<void> write_whole(const std::string& target, std::string_view text);
// `what`, and what errno `error` means; kPermission or kIo.
Error system_error(const std::string& what, const std::string& where, int error);

}  // namespace lockstep
