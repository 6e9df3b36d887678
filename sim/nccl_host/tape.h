// SPDX-License-Identifier: Apache-2.0
// A tape is a recording of every call that NCCL made into a profiler plugin: JSON Lines, first line `tape`,
// then init, start, state, stop and finalize in the order in which they were made (sim/README.md). Plain or
// gzip-compressed. A torn last line is what a killed recorder leaves: it sets Program::torn. Any other bad
// line is an error with its line number. Contexts and handles that the recorded process never created belong
// to another process (PXN): they become foreign slots.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "nccl_host/program.h"

namespace lockstep::sim {

// The text of a file, unpacked if it is gzip-compressed.
Result<std::string> read_recording(const std::string& path);
Result<Program> read_tape(const std::string& path);
Result<Program> parse_tape(std::string_view text, const std::string& name);

}  // namespace lockstep::sim
