// SPDX-License-Identifier: Apache-2.0
// Emphasis and width on a terminal. Elsewhere, with NO_COLOR set or on a dumb terminal, text stays as it is;
// what is no terminal has 100 columns for running text and no limit for tables, or as many for both as
// COLUMNS says, which `watch` sets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

class Style {
 public:
  static constexpr size_t kColumns = 100;
  explicit Style(bool colours, size_t columns = kColumns, size_t room = SIZE_MAX)
      : colours_(colours), columns_(columns), room_(room) {}
  // For what goes to stdout.
  static Style of_stdout();

  // That running text may take.
  size_t columns() const { return columns_; }
  // That tables may take.
  size_t room() const { return room_; }

  std::string bad(std::string_view text) const { return put(kBad, text); }
  std::string warning(std::string_view text) const { return put(kWarning, text); }
  std::string good(std::string_view text) const { return put(kGood, text); }
  std::string heading(std::string_view text) const { return put(kHeading, text); }
  std::string faint(std::string_view text) const { return put(kFaint, text); }

  // Bytes of the code of ours that `text` begins with; 0 none. Columns are counted without them.
  static size_t code_at(std::string_view text) {
    for (std::string_view code : {kBad, kWarning, kGood, kHeading, kFaint, kPlain}) {
      if (text.starts_with(code)) return code.size();
    }
    return 0;
  }

 private:
  static constexpr std::string_view kBad = "\033[1;31m", kWarning = "\033[1;33m", kGood = "\033[1;32m",
                                    kHeading = "\033[1m", kFaint = "\033[2m", kPlain = "\033[0m";
  std::string put(std::string_view code, std::string_view text) const {
    return colours_ ? std::string(code) + std::string(text) + std::string(kPlain) : std::string(text);
  }
  bool colours_;
  size_t columns_, room_;
};

}  // namespace lockstep
