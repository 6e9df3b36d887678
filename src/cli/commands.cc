// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include "cli/kit/nearest.h"

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

std::string unknown_command(std::string_view word) {
  std::vector<std::string_view> names;
  for (const Command* command : kCommands) names.push_back(command->name);
  const std::string meant = did_you_mean(word, names);
  return "unknown command '" + std::string(word) + "'" + (meant.empty() ? ";" : meant) +
         " the commands are: " + command_names();
}

}  // namespace lockstep::cli
