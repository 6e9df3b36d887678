// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/manual/completion_script.h"

namespace lockstep::cli {
namespace {

int run_completion(const Arguments& arguments) {
  const std::string& shell = arguments.operands()[0];
  if (shell == "bash") return print(manual::bash_completion());
  if (shell == "zsh") return print(manual::zsh_completion());
  if (shell == "fish") return print(manual::fish_completion());
  return fail("no completion for shell '" + shell + "'; bash, zsh and fish have one");
}

}  // namespace

const Command completion_command = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .description =
        "Prints the completion script of a shell. For bash: `source <(lockstep completion bash)`. An installed lockstep does not need this.",
    .operands =
        {.name = "SHELL", .help = "bash, zsh or fish", .least = 1, .most = 1, .choices = "bash zsh fish"},
    .options = {},
    .run = run_completion,
};

}  // namespace lockstep::cli
