// SPDX-License-Identifier: Apache-2.0
// Lines and words of what a tool printed.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/ascii.h"
#include "links/record.h"

namespace lockstep::links {

// Line by line, without their ends, and numbered from 1.
class TextLines {
 public:
  explicit TextLines(std::string_view text) : rest_(text) {}
  // False: there is no other.
  bool next() {
    if (rest_.empty()) return false;
    line_ = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(line_.size() + 1, rest_.size()));
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    ++number_;
    return true;
  }
  std::string_view line() const { return line_; }
  uint32_t number() const { return number_; }

 private:
  std::string_view rest_, line_;
  uint32_t number_ = 0;
};

inline constexpr std::string_view kBlanksOfLine = " \t\r";

// At most `most` words; a caller asks for one more than it can use.
inline std::vector<std::string_view> split_words(std::string_view line, size_t most) {
  std::vector<std::string_view> words;
  while (words.size() < most && !(line = trimmed(line, kBlanksOfLine)).empty()) {
    words.push_back(line.substr(0, line.find_first_of(" \t")));
    line.remove_prefix(words.back().size());
  }
  return words;
}

// The whole word is a number.
template <class T>
std::optional<T> number_of(std::string_view word, int base = 10) {
  T value{};
  std::from_chars_result parsed{};
  if constexpr (std::is_floating_point_v<T>)
    parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  else
    parsed = std::from_chars(word.data(), word.data() + word.size(), value, base);
  return parsed.ec == std::errc() && parsed.ptr == word.data() + word.size() ? std::optional(value)
                                                                             : std::nullopt;
}

// What the record draws from this line can be shown.
inline void keep_line(LinksRecord& record, uint32_t number, std::string_view line) {
  constexpr size_t kMostShown = 160;
  record.lines.emplace(number, trimmed(line, kBlanksOfLine).substr(0, kMostShown));
}
inline void keep_line_of(LinksRecord& record, const std::string& device, uint32_t number,
                         std::string_view line) {
  keep_line(record, number, line);
  record.lines_of[device].push_back(number);
}

}  // namespace lockstep::links
