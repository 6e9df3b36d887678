// SPDX-License-Identifier: Apache-2.0
// A command of the program: its texts and options as data, and the function that runs it. A new one is a line in
// commands.def and a file `<name>_command.cc`; help, completions and the man page follow from the data.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "cli/arguments.h"

namespace lockstep::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFindings = 1;  // what was looked at is not as it should be
inline constexpr int kExitUsage = 2;     // bad usage, or input that cannot be read
inline constexpr int kExitCannotTell = 3;

struct Command {
  std::string_view name;
  std::string_view summary;      // one line
  std::string_view description;  // paragraphs, separated by an empty line
  Operands operands;
  std::span<const Option> options;
  int (*run)(const Arguments& arguments);
};

#define COMMAND(name) extern const Command name##_command;
#include "cli/commands.def"
#undef COMMAND

// All commands, in the order of commands.def.
std::span<const Command* const> all_commands();
const Command* find_command(std::string_view name);
// The names, blank-separated, for messages and completions.
std::string command_names();
// What to say of a word that is none of them.
std::string unknown_command(std::string_view word);

}  // namespace lockstep::cli
