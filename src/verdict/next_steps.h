// SPDX-License-Identifier: Apache-2.0
// What findings advise, as commands that are ready to run: with the host, the process, the operation and the
// input filled in. Names come from files: whatever a shell might take for more than a word is quoted, and
// what cannot be is left out.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/diagnosed_run.h"

namespace lockstep::verdict {

// Fills Finding::next of all findings. `paths`: the input as the user named it. `boot_id`: of this machine,
// in hex.
void add_next_steps(const std::vector<std::string>& paths, std::string_view boot_id, DiagnosedRun& run);

// The beginning of the command that shows an operation of this communicator, up to the number; nothing if no
// command line can name it. `comm`: row of the evidence's job.
std::optional<std::string> show_command(const Evidence& evidence, uint32_t comm);

// As one word of a shell's command line; nothing if it has characters that no terminal shows.
std::optional<std::string> shell_word(std::string_view text);

}  // namespace lockstep::verdict
