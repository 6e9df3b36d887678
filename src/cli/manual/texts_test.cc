// SPDX-License-Identifier: Apache-2.0
// Help, manual and completions come from one table: each names every command and every option.
#include <gtest/gtest.h>

#include <set>

#include "base/text/wrap.h"
#include "cli/command.h"
#include "cli/manual/completion_script.h"
#include "cli/manual/help_text.h"
#include "cli/manual/man_page.h"

namespace lockstep::cli::manual {
namespace {

std::string unescaped(std::string roff) {
  for (size_t at = 0; (at = roff.find("\\-", at)) != std::string::npos;) roff.replace(at, 2, "-");
  return roff;
}

TEST(Texts, NameEveryCommandAndOption) {
  std::string program = program_help(), man = unescaped(man_page());
  std::string bash = bash_completion(), zsh = zsh_completion(), fish = fish_completion();
  for (const Command* command : all_commands()) {
    std::string name(command->name);
    EXPECT_NE(program.find("\n  " + name), std::string::npos) << name;
    EXPECT_NE(man.find("lockstep " + name), std::string::npos) << name;
    EXPECT_NE(bash.find("    " + name + ")\n"), std::string::npos) << name;
    EXPECT_NE(zsh.find("  " + name + ") "), std::string::npos) << name;
    EXPECT_NE(fish.find(" -a " + name + " "), std::string::npos) << name;
    std::string help = command_help(*command);
    std::vector<Option> options(command->options.begin(), command->options.end());
    options.insert(options.end(), common_options().begin(), common_options().end());
    for (const Option& option : options) {
      std::string flag = "--" + std::string(option.name);
      EXPECT_NE(help.find(flag), std::string::npos) << name << flag;
      EXPECT_NE(man.find(flag), std::string::npos) << name << flag;
      EXPECT_NE(bash.find(flag), std::string::npos) << name << flag;
      EXPECT_NE(zsh.find("'" + flag), std::string::npos) << name << flag;
      EXPECT_NE(fish.find(" -l " + std::string(option.name)), std::string::npos) << name << flag;
      EXPECT_FALSE(option.help.empty()) << name << flag;
      EXPECT_FALSE(option.help.ends_with('.')) << name << flag;
    }
  }
}

TEST(Texts, NamesAreUnique) {
  std::set<std::string_view> commands;
  for (const Command* command : all_commands()) {
    EXPECT_TRUE(commands.insert(command->name).second) << command->name;
    EXPECT_EQ(find_command(command->name), command);
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const Option& option : command->options) {
      EXPECT_TRUE(names.insert(option.name).second) << option.name;
      EXPECT_TRUE(option.letter == 0 || letters.insert(option.letter).second) << option.name;
    }
  }
}

void expect_to_fit(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    EXPECT_LE(columns(text.substr(at, end - at)), 80u) << text.substr(at, end - at);
    at = end + 1;
  }
}

TEST(Texts, HelpFitsATerminal) {
  expect_to_fit(program_help());
  for (const Command* command : all_commands()) expect_to_fit(command_help(*command));
}

}  // namespace
}  // namespace lockstep::cli::manual
