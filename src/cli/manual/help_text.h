// SPDX-License-Identifier: Apache-2.0
// `--help`, made from the table of commands.
#pragma once
#include <string>
#include <string_view>

#include "cli/command.h"

namespace lockstep::cli::manual {

inline constexpr std::string_view kProgramSummary =
    "says which rank, call or link holds a distributed GPU job back";

std::string program_help();
std::string command_help(const Command& command);
// "lockstep merge [options] RUN|FILE..."
std::string usage_line(const Command& command);
// "-o, --output OUT"
std::string option_heading(const Option& option);
// The help with its fallback, "mode (default: stream)".
std::string option_text(const Option& option);

}  // namespace lockstep::cli::manual
