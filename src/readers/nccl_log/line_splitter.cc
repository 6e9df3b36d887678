// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/line_splitter.h"

#include <algorithm>

namespace lockstep::readers::nccl_log {
namespace {

// Length of what is no text at `at`: a colour, a character without width, a zero byte. 0: it is text.
size_t mark_at(std::string_view line, size_t at) {
  if (line[at] == '\0' || line[at] == '\r') return 1;
  if (line[at] == '\033') {
    size_t end = at + 1;
    if (end < line.size() && line[end] == '[') {
      do {
        ++end;
      } while (end < line.size() && !(line[end] >= '@' && line[end] <= '~'));
    }
    return std::min(end + 1, line.size()) - at;
  }
  const std::string_view three = line.substr(at, 3);
  return three == "\xE2\x80\x8B" || three == "\xE2\x80\x8C" || three == "\xE2\x80\x8D" ||
                 three == "\xEF\xBB\xBF"
             ? 3
             : 0;
}

bool has_marks(std::string_view line) {
  return std::memchr(line.data(), '\033', line.size()) != nullptr ||
         std::memchr(line.data(), '\0', line.size()) != nullptr ||
         std::memchr(line.data(), '\r', line.size()) != nullptr ||
         std::memchr(line.data(), '\xE2', line.size()) != nullptr ||
         std::memchr(line.data(), '\xEF', line.size()) != nullptr;
}

}  // namespace

void LineSplitter::keep(std::string_view part) {
  const size_t fits = std::min(part.size(), kLineMost - std::min(carry_.size(), kLineMost));
  carry_.append(part.substr(0, fits));
  if (fits == part.size()) return;
  if (!is_cut_) ++cut_lines_;
  is_cut_ = true;
  cut_bytes_ += part.size() - fits;
}

std::string_view LineSplitter::clean(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (!line.empty() && has_marks(line)) {
    scratch_.clear();
    for (size_t at = 0; at < line.size();) {
      const size_t mark = mark_at(line, at);
      if (line[at] == '\0') ++zero_bytes_;
      if (mark == 0) scratch_ += line[at];
      at += std::max<size_t>(mark, 1);
    }
    line = scratch_;
  }
  while (line.starts_with("> ")) line.remove_prefix(2);
  return line;
}

}  // namespace lockstep::readers::nccl_log
