// SPDX-License-Identifier: Apache-2.0
#include "base/text/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace lockstep {

namespace {

// Narrower than the least, words break anyway; lines longer than the most are hard to read.
constexpr size_t kLeastColumns = 40, kMostColumns = 160;

size_t columns_of_stdout() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return Style::kColumns;
  return std::clamp<size_t>(size.ws_col, kLeastColumns, kMostColumns);
}

}  // namespace

Style Style::of_stdout() {
  // As no-color.org has it: an empty value does not count.
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  bool wanted = no_color == nullptr || *no_color == 0;
  bool able = isatty(STDOUT_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
  return Style(wanted && able, columns_of_stdout());
}

}  // namespace lockstep
