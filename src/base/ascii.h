// SPDX-License-Identifier: Apache-2.0
// Characters and words by ASCII alone: what <cctype> says depends on the locale.
#pragma once
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace lockstep {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Without what stands of `blanks` before and behind it.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t") {
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

// Takes the words, or a number, off the begin of a text, if it begins with them.
constexpr bool take(std::string_view& text, std::string_view words) {
  if (!text.starts_with(words)) return false;
  text.remove_prefix(words.size());
  return true;
}
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace lockstep
