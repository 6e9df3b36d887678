// SPDX-License-Identifier: Apache-2.0
// Completion scripts for three shells from the table of commands, so a new option completes without a change
// here. Help texts land in single-quoted words of zsh and fish and are escaped for them. The scripts run no
// lockstep: completing must be fast, and work where the program cannot start.
#include "cli/manual/completion_script.h"

#include <vector>

#include "cli/command.h"

namespace lockstep::cli::manual {
namespace {

std::vector<const Option*> options_of(const Command& command) {
  std::vector<const Option*> options;
  for (const Option& option : command.options) options.push_back(&option);
  for (const Option& option : common_options()) options.push_back(&option);
  return options;
}

// The words that complete the operands; "COMMANDS" in the table stands for the commands' names.
std::string operand_choices(const Command& command) {
  return command.operands.choices == "COMMANDS" ? command_names() : std::string(command.operands.choices);
}

// For single-quoted shell text that zsh's _arguments and fish read: no quotes, brackets or colons of our own.
std::string quote(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':') {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string fish_quote(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// An optional value comes behind `=` only, so the next word is not its.
bool takes_next_word(const Option& option) { return !option.value.empty() && !option.value_optional; }

std::string bash_values(const Command& command) {
  std::string out;
  for (const Option* option : options_of(command)) {
    if (!takes_next_word(*option)) continue;
    out += "        --" + std::string(option->name);
    if (option->letter != 0) out += std::string("|-") + option->letter;
    out += ")\n          ";
    if (!option->choices.empty()) {
      out += "COMPREPLY=($(compgen -W \"" + std::string(option->choices) + "\" -- \"$cur\"))";
    } else {
      out += option->takes_path ? "COMPREPLY=($(compgen -f -- \"$cur\"))" : "COMPREPLY=()";
    }
    out += "\n          return ;;\n";
  }
  return out.empty() ? out : "      case $prev in\n" + out + "      esac\n";
}

std::string bash_case(const Command& command) {
  std::string words;
  for (const Option* option : options_of(command))
    words += (words.empty() ? "--" : " --") + std::string(option->name);
  std::string out = "    " + std::string(command.name) + ")\n" + bash_values(command) +
                    "      if [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W \"" + words +
                    "\" -- \"$cur\"))\n";
  std::string choices = operand_choices(command);
  if (!choices.empty()) {
    out += "      else\n        COMPREPLY=($(compgen -W \"" + choices + "\" -- \"$cur\"))\n";
  } else if (!command.operands.name.empty()) {
    out += "      else\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n";
  }
  return out + "      fi ;;\n";
}

// `lockstep trace` options CMD...: behind the options, the words of CMD complete as CMD's own.
std::string bash_runs_command() {
  std::string out;
  for (const Command* command : all_commands()) {
    if (!command->operands.runs_command) continue;
    std::string with_value;
    for (const Option* option : options_of(*command)) {
      if (!takes_next_word(*option)) continue;
      with_value += (with_value.empty() ? "--" : "|--") + std::string(option->name);
      if (option->letter != 0) with_value += std::string("|-") + option->letter;
    }
    out += "  if [[ ${COMP_WORDS[1]} == " + std::string(command->name) +
           " ]]; then\n"
           "    for ((i = 2; i < COMP_CWORD; ++i)); do\n"
           "      case ${COMP_WORDS[i]} in\n"
           "        " +
           with_value +
           ") ((++i)) ;;\n"
           "        --) ((++i)); break ;;\n"
           "        -*) ;;\n"
           "        *) break ;;\n"
           "      esac\n"
           "    done\n"
           "    if ((i <= COMP_CWORD)) && [[ $cur != -* || $i -lt $COMP_CWORD ]] && [[ $prev != -? ]] && "
           "declare -F _command_offset >/dev/null; then\n"
           "      case $prev in " +
           with_value +
           ") ;; *) _command_offset $i; return ;; esac\n"
           "    fi\n"
           "  fi\n";
  }
  return out;
}

std::string zsh_option(const Option& option) {
  std::string help = "[" + quote(option.help) + "]";
  std::string action;
  if (!option.value.empty()) {
    action = (option.value_optional ? "::" : ":") + quote(option.value) + ":";
    if (!option.choices.empty()) {
      action += "(" + std::string(option.choices) + ")";
    } else if (option.takes_path) {
      action += "_files";
    }
  }
  // zsh: `=` takes the value from the same or the next word, `=-` from the same word alone.
  std::string equals = option.value.empty() ? "" : option.value_optional ? "=-" : "=";
  std::string out = " '--" + std::string(option.name) + equals + help + action + "'";
  if (option.letter != 0)
    out += " '-" + std::string(1, option.letter) + (option.value.empty() ? "" : "+") + help + action + "'";
  return out;
}

std::string zsh_operands(const Command& command) {
  if (command.operands.name.empty()) return {};
  // `(-)` ends lockstep's own options at the command's name; `_normal` then completes the rest as that
  // command's.
  if (command.operands.runs_command) return " '(-)1:command:_command_names -e' '*::arguments:_normal'";
  std::string choices = operand_choices(command);
  return " '*:" + quote(command.operands.name) + ":" + (choices.empty() ? "_files" : "(" + choices + ")") +
         "'";
}

}  // namespace

std::string bash_completion() {
  std::string out =
      "# SPDX-License-Identifier: Apache-2.0\n# bash completion for lockstep\n_lockstep() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i\n  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W \"" +
      command_names() + " --help --version\" -- \"$cur\"))\n    return\n  fi\n" + bash_runs_command() +
      "  case ${COMP_WORDS[1]} in\n";
  for (const Command* command : all_commands()) out += bash_case(*command);
  return out + "  esac\n}\ncomplete -o filenames -F _lockstep lockstep\n";
}

std::string zsh_completion() {
  std::string out = "#compdef lockstep\n# SPDX-License-Identifier: Apache-2.0\nlocal -a commands=(\n";
  for (const Command* command : all_commands()) {
    out += "  '" + std::string(command->name) + ":" + quote(command->summary) + "'\n";
  }
  out +=
      ")\nif ((CURRENT == 2)); then\n  _describe command commands\n"
      "  _arguments '--help[print this help and exit]' '--version[print the version and exit]'\n  "
      "return\nfi\n"
      "local command=$words[2]\nshift words\n((CURRENT--))\ncase $command in\n";
  for (const Command* command : all_commands()) {
    out += "  " + std::string(command->name) + ") _arguments -S";
    for (const Option* option : options_of(*command)) out += zsh_option(*option);
    out += zsh_operands(*command) + " ;;\n";
  }
  return out + "esac\n";
}

std::string fish_completion() {
  std::string out =
      "# SPDX-License-Identifier: Apache-2.0\ncomplete -c lockstep -n __fish_use_subcommand -l help -d "
      "'print this help and exit'\ncomplete -c lockstep -n __fish_use_subcommand -l version -d 'print the "
      "version and exit'\n";
  for (const Command* command : all_commands()) {
    std::string name(command->name);
    out += "complete -c lockstep -f -n __fish_use_subcommand -a " + name + " -d '" +
           fish_quote(command->summary) + "'\n";
    std::string within = "complete -c lockstep -n '__fish_seen_subcommand_from " + name + "'";
    for (const Option* option : options_of(*command)) {
      out += within + " -l " + std::string(option->name);
      if (option->letter != 0) out += std::string(" -s ") + option->letter;
      // fish: -r takes files as well, -x only what -a lists.
      if (takes_next_word(*option)) out += option->takes_path ? " -r" : " -x";
      if (!option->choices.empty()) out += " -a '" + std::string(option->choices) + "'";
      out += " -d '" + fish_quote(option->help) + "'\n";
    }
    if (command->operands.runs_command)
      out += within + " -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n";
    if (std::string choices = operand_choices(*command); !choices.empty())
      out += within + " -f -a '" + choices + "'\n";
  }
  return out;
}

}  // namespace lockstep::cli::manual
