// SPDX-License-Identifier: Apache-2.0
// `--help` from the table of commands. 80 columns whatever the terminal has, so that docs/cli.md, which is
// made from this text, is the same everywhere.
#include "cli/manual/help_text.h"

#include "base/text/wrap.h"

namespace lockstep::cli::manual {
namespace {

constexpr size_t kWidth = 80;

std::string row(std::string heading, std::string_view text, size_t column) {
  std::string line = "  " + std::move(heading);
  // A long heading keeps its line, and the text begins on the next one.
  if (line.size() + 2 > column) {
    line += '\n' + std::string(column, ' ');
  } else {
    line.resize(column, ' ');
  }
  return line + wrap(text, column, kWidth) + '\n';
}

std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t end = text.find("\n\n");
    out += wrap(text.substr(0, end), 0, kWidth) + "\n\n";
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
  return out;
}

}  // namespace

std::string usage_line(const Command& command) {
  std::string line = "lockstep " + std::string(command.name) + " [options]";
  const Operands& operands = command.operands;
  if (operands.name.empty()) return line;
  if (operands.runs_command) return line + " [--] " + std::string(operands.name);
  std::string name(operands.name);
  // A fixed number of operands is written out, as in `A B`.
  if (operands.most > 1 && operands.most != operands.least) name += "...";
  return line + (operands.least == 0 ? " [" + name + "]" : " " + name);
}

std::string option_heading(const Option& option) {
  std::string heading = option.letter != 0 ? std::string("-") + option.letter + ", " : "    ";
  heading += "--" + std::string(option.name);
  if (option.value_optional) return heading + "[=" + std::string(option.value) + "]";
  if (!option.value.empty()) heading += " " + std::string(option.value);
  return heading;
}

std::string option_text(const Option& option) {
  std::string text(option.help);
  if (!option.fallback.empty()) text += " (default: " + std::string(option.fallback) + ")";
  return text;
}

std::string program_help() {
  std::string out =
      "lockstep " + std::string(kProgramSummary) + "\n\nUsage: lockstep COMMAND [options] ...\n\nCommands:\n";
  for (const Command* command : all_commands()) out += row(std::string(command->name), command->summary, 14);
  out += "\nOptions:\n" + row("-h, --help", "print this help and exit", 18) +
         row("-V, --version", "print the version and exit", 18);
  return out +
         "\n`lockstep COMMAND --help` says more about a command; `lockstep man` prints the\nwhole manual.\n";
}

std::string command_help(const Command& command) {
  std::string out = "Usage: " + usage_line(command) + "\n\n" + paragraphs(command.description);
  if (!command.operands.help.empty()) {
    out += row(std::string(command.operands.name), command.operands.help, 28) + "\n";
  }
  out += "Options:\n";
  for (const Option& option : command.options) out += row(option_heading(option), option_text(option), 28);
  for (const Option& option : common_options()) out += row(option_heading(option), option_text(option), 28);
  return out;
}

}  // namespace lockstep::cli::manual
