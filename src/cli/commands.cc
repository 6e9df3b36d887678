// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

namespace lockstep::cli {
namespace {

constexpr const Command* kCommands[] = {
#define COMMAND(name) &name##_command,
#include "cli/commands.def"
#undef COMMAND
};

}  // namespace

std::span<const Command* const> all_commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  for (const Command* command : kCommands) {
    if (command->name == name) return command;
  }
  return nullptr;
}

std::string command_names() {
  std::string names;
  for (const Command* command : kCommands) {
    if (!names.empty()) names += ' ';
    names += command->name;
  }
  return names;
}

}  // namespace lockstep::cli
