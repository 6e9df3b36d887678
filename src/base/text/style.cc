// SPDX-License-Identifier: Apache-2.0
#include "base/text/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace lockstep {

namespace {

// Narrower than the least, words break anyway; lines longer than the most are hard to read.
constexpr size_t kLeastColumns = 40, kMostColumns = 160;

// 0: nobody says.
size_t columns_of_stdout() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const set = std::getenv("COLUMNS");
  const std::string_view text = set == nullptr ? "" : set;
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

}  // namespace

Style Style::of_stdout() {
  // As no-color.org has it: an empty value does not count.
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  bool wanted = no_color == nullptr || *no_color == 0;
  bool able = isatty(STDOUT_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
  const size_t columns = columns_of_stdout();
  if (columns == 0) return Style(wanted && able);
  return Style(wanted && able, std::clamp(columns, kLeastColumns, kMostColumns),
               std::max(columns, kLeastColumns));
}

}  // namespace lockstep
