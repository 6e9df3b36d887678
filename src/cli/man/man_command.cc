// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/manual/man_page.h"

namespace lockstep::cli {
namespace {

int run_man(const Arguments&) { return print(manual::man_page()); }

}  // namespace

const Command man_command = {
    .name = "man",
    .summary = "print the manual page",
    .description = "Prints the manual page in roff. `lockstep man | man -l -` shows it.",
    .operands = {},
    .options = {},
    .run = run_man,
};

}  // namespace lockstep::cli
