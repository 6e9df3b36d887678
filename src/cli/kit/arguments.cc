// SPDX-License-Identifier: Apache-2.0
// Parses command lines by the table of a command. Options may stand behind operands, except for a command
// that runs another one: its first operand ends its own options. Every error names what was expected, and a
// slip gets a guess. If an option is given twice, the last one counts, unless it is repeatable.
#include "cli/kit/arguments.h"

#include <charconv>

#include "cli/kit/nearest.h"

namespace lockstep::cli {
namespace {

constexpr Option kCommon[] = {{'h', "help", "", "print this help and exit"}};

const Option* find_option(std::span<const Option> options, auto&& matches) {
  for (const Option& option : options) {
    if (matches(option)) return &option;
  }
  for (const Option& option : kCommon) {
    if (matches(option)) return &option;
  }
  return nullptr;
}

bool is_choice(std::string_view choices, std::string_view word) {
  while (!choices.empty()) {
    size_t blank = choices.find(' ');
    std::string_view choice = choices.substr(0, blank);
    // `sample=` stands for all that begin so; the command reads the rest.
    if (choice.ends_with('=') ? word.starts_with(choice) : word == choice) return true;
    if (blank == std::string_view::npos) break;
    choices.remove_prefix(blank + 1);
  }
  return false;
}

// An option as written on the command line: which, and the value attached to it, if any.
struct Written {
  const Option* option = nullptr;
  std::optional<std::string> attached;
};

Written read_option(std::span<const Option> options, std::string_view word) {
  Written written;
  if (word.starts_with("--")) {
    std::string_view name = word.substr(2);
    size_t equals = name.find('=');
    if (equals != std::string_view::npos) written.attached = std::string(name.substr(equals + 1));
    name = name.substr(0, equals);
    written.option = find_option(options, [&](const Option& option) { return option.name == name; });
  } else {
    // Short flags cannot be joined: what follows the letter is its value.
    if (word.size() > 2) written.attached = std::string(word.substr(2));
    written.option = find_option(options, [&](const Option& option) { return option.letter == word[1]; });
  }
  return written;
}

std::string meant(std::span<const Option> options, std::string_view word) {
  std::vector<std::string> names;
  for (const std::span<const Option> all : {options, std::span<const Option>(kCommon)}) {
    for (const Option& option : all) names.push_back("--" + std::string(option.name));
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return did_you_mean(word.substr(0, word.find('=')), known);
}

}  // namespace

std::span<const Option> common_options() { return kCommon; }

std::string Arguments::value(std::string_view option) const {
  if (auto found = values_.find(option); found != values_.end()) return found->second;
  for (const Option& known : options_) {
    if (known.name == option) return std::string(known.fallback);
  }
  return {};
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : repeated_) {
    if (name == option) values.push_back(value);
  }
  return values;
}

Result<uint64_t> Arguments::number(std::string_view option) const {
  std::string text = value(option);
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // from_chars takes no blanks and no plus sign; the rest of the text has to be empty.
  if (error != std::errc{} || end != text.data() + text.size()) {
    return usage_error("--" + std::string(option) + " takes a number, not '" + text + "'");
  }
  return number;
}

Result<Arguments> parse_arguments(std::span<const Option> options, const Operands& operands,
                                  std::span<const char* const> words) {
  Arguments arguments;
  arguments.options_ = options;
  size_t i = 0;
  for (; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    // A dash alone is an operand; `diagnose` reads standard input for it.
    if (word.size() < 2 || word[0] != '-') {
      if (operands.runs_command) break;
      arguments.operands_.emplace_back(word);
      continue;
    }
    auto [option, attached] = read_option(options, word);
    if (option == nullptr)
      return usage_error("unknown option '" + std::string(word) + "'" + meant(options, word));
    std::string_view name = option->name;
    if (option->value.empty()) {
      if (attached) return usage_error("--" + std::string(name) + " takes no value");
      arguments.values_[name] = "yes";
      continue;
    }
    // Such a value is never the next word, which may be an operand.
    if (!attached && option->value_optional) {
      attached = std::string(option->fallback);
    } else if (!attached) {
      if (i + 1 == words.size()) {
        return usage_error("--" + std::string(name) + " needs a value (" + std::string(option->value) + ")");
      }
      attached = words[++i];
    }
    if (!option->choices.empty() && !is_choice(option->choices, *attached)) {
      return usage_error("--" + std::string(name) + " takes one of: " + std::string(option->choices) +
                         "; not '" + *attached + "'");
    }
    arguments.values_[name] = *attached;
    if (option->repeatable) arguments.repeated_.emplace_back(name, *attached);
  }
  for (; i < words.size(); ++i) arguments.operands_.emplace_back(words[i]);
  // Who asks for help need not know the operands yet.
  if (arguments.has("help")) return arguments;
  size_t count = arguments.operands_.size();
  if (operands.least == operands.most && operands.least > 1 && count != operands.least)
    return usage_error("the command takes " + std::to_string(operands.least) + " operands (" +
                       std::string(operands.name) + "), not " + std::to_string(count));
  if (count < operands.least) return usage_error(std::string(operands.name) + " is missing");
  if (!operands.runs_command && count > operands.most) {
    return usage_error("unexpected operand '" + arguments.operands_[operands.most] + "'");
  }
  return arguments;
}

}  // namespace lockstep::cli
