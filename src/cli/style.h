// SPDX-License-Identifier: Apache-2.0
// Emphasis on a terminal. Elsewhere, with NO_COLOR set or on a dumb terminal, text stays as it is.
#pragma once
#include <string>
#include <string_view>

namespace lockstep::cli {

class Style {
 public:
  explicit Style(bool colours) : colours_(colours) {}
  // For what goes to stdout.
  static Style of_stdout();

  std::string bad(std::string_view text) const { return put("\033[1;31m", text); }
  std::string warning(std::string_view text) const { return put("\033[1;33m", text); }
  std::string good(std::string_view text) const { return put("\033[1;32m", text); }
  std::string heading(std::string_view text) const { return put("\033[1m", text); }
  std::string faint(std::string_view text) const { return put("\033[2m", text); }

 private:
  std::string put(std::string_view code, std::string_view text) const {
    return colours_ ? std::string(code) + std::string(text) + "\033[0m" : std::string(text);
  }
  bool colours_;
};

}  // namespace lockstep::cli
