// SPDX-License-Identifier: Apache-2.0
// A command of the program: its texts and options as data, and the function that runs it. A new one is a line
// in commands.def and a file `<name>/<name>_command.cc`; help, completions and the man page follow from the
// data.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "base/exit_codes.h"
#include "cli/kit/arguments.h"

namespace lockstep::cli {

struct Command {
  std::string_view name;
  std::string_view summary;      // one line
  std::string_view description;  // paragraphs, separated by an empty line
  Operands operands;
  std::span<const Option> options;
  // The exit code: base/exit_codes.h. It may throw; main() prints what.
  int (*run)(const Arguments& arguments);
};

#define COMMAND(name) extern const Command name##_command;
#include "cli/commands.def"
#undef COMMAND

// All commands, in the order of commands.def.
std::span<const Command* const> all_commands();
// nullptr: there is none of this name.
const Command* find_command(std::string_view name);
// The names, blank-separated, for messages and completions.
std::string command_names();
// What to say of a word that is none of them.
std::string unknown_command(std::string_view word);

}  // namespace lockstep::cli
