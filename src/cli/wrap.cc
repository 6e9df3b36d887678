// SPDX-License-Identifier: Apache-2.0
#include "cli/wrap.h"

#include <algorithm>

#include "cli/table.h"

namespace lockstep::cli {

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

}  // namespace lockstep::cli
