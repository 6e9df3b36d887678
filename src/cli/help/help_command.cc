// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/manual/help_text.h"

namespace lockstep::cli {
namespace {

int run_help(const Arguments& arguments) {
  if (arguments.operands().empty()) return print(manual::program_help());
  const Command* command = find_command(arguments.operands()[0]);
  if (command == nullptr) {
    return fail(unknown_command(arguments.operands()[0]));
  }
  return print(manual::command_help(*command));
}

}  // namespace

const Command help_command = {
    .name = "help",
    .summary = "list the commands, or explain one",
    .description = "Lists the commands, or explains the one named.",
    .operands = {.name = "COMMAND", .help = "one of the commands", .most = 1, .choices = "COMMANDS"},
    .options = {},
    .run = run_help,
};

}  // namespace lockstep::cli
