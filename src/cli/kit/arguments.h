// SPDX-License-Identifier: Apache-2.0
// What a command accepts, as data, and the parser for it. One table serves parsing, `--help`, the completions
// and the man page, so they cannot disagree.
//
// Accepted: `-o OUT`, `-oOUT`, `--output OUT`, `--output=OUT`, flags, and `--` after which everything is an
// operand. A command that runs another one (`runs_command`) ends its own options at the first operand: what
// follows, with any later `--`, belongs to the other command and is passed on untouched.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::cli {

struct Option {
  char letter;                  // 0: long form only
  std::string_view name;        // without dashes
  std::string_view value;       // placeholder; empty: a flag
  std::string_view help;        // one line, no full stop
  std::string_view fallback{};  // value when not given, as shown; empty: none
  std::string_view choices{};  // blank-separated words that complete the value; after one in `=` more follows
  bool takes_path = false;     // completes with file names
  bool value_optional = false;  // the value only as `--name=VALUE`; without one it is the fallback
  bool repeatable = false;      // each one given counts: Arguments::values
};

struct Operands {
  std::string_view name{};  // placeholder; empty: the command takes none
  std::string_view help{};
  size_t least = 0, most = 0;
  std::string_view choices{};
  bool runs_command = false;
};

// The options every command has.
std::span<const Option> common_options();

class Arguments {
 public:
  // Whether it was given: a fallback does not count.
  bool has(std::string_view option) const { return values_.contains(option); }
  // The value given, else the option's fallback.
  std::string value(std::string_view option) const;
  // Of a repeatable option, in order; empty if it was not given.
  std::vector<std::string> values(std::string_view option) const;
  const std::vector<std::string>& operands() const { return operands_; }
  // The value as a whole number without sign; kUsage if it is none, also where there is neither value nor
  // fallback.
  Result<uint64_t> number(std::string_view option) const;

 private:
  friend Result<Arguments> parse_arguments(std::span<const Option>, const Operands&,
                                           std::span<const char* const>);
  std::map<std::string_view, std::string> values_;
  std::vector<std::pair<std::string_view, std::string>> repeated_;
  std::vector<std::string> operands_;
  std::span<const Option> options_;
};

// Parses what follows the command's name. With --help among the options, missing operands are no error.
Result<Arguments> parse_arguments(std::span<const Option> options, const Operands& operands,
                                  std::span<const char* const> words);

}  // namespace lockstep::cli
