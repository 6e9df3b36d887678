// SPDX-License-Identifier: Apache-2.0
// Fills lines greedily, in one pass. A word that is wider than a line is never broken and juts out of it.
#include "base/text/wrap.h"

#include <algorithm>

namespace lockstep {

std::string wrap(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    size_t blank = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (column > indent && column + 1 + columns(word) > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns(word);
  }
  return out;
}

std::string within(std::string_view text, size_t width) {
  std::string out;
  for (const std::string_view line : lines(text)) {
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    out += columns(line) > width
               ? std::string(line.substr(0, indent)) + wrap(line.substr(indent), indent, width)
               : std::string(line);
    out += '\n';
  }
  return out;
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

size_t columns(std::string_view text) {
  return static_cast<size_t>(
      // Bytes that continue a character of UTF-8 take no column.
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace lockstep
