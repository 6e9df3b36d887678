// SPDX-License-Identifier: Apache-2.0
// Finishes the files of processes that ended before all was in them (segment/adopt.h).
#pragma once
#include <string>

namespace lockstep::run {

// Of a run directory, the folders in it, or a process file: those of this user and this host. Whose file
// cannot be written stays as it is, and is read all the same.
void adopt_run(const std::string& path);

}  // namespace lockstep::run
