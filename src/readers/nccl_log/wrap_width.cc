// SPDX-License-Identifier: Apache-2.0
// Logs that were copied from a terminal are broken at its width, and a broken line is no message any more.
// The width is found from the text: two thirds of the lines that are exactly so long are followed by one that
// may be the rest of them. A line that begins like a line (a head, a level, a time) is never taken for a
// rest, since joining two messages would lose both.
#include "readers/nccl_log/wrap_width.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/lines/line_splitter.h"
#include "readers/nccl_log/head.h"
#include "readers/nccl_log/program_lines.h"

namespace lockstep::readers::nccl_log {

namespace {

struct Line {
  size_t size = 0;
  bool continues = false;       // may be the rest of the one before it
  bool is_inside_word = false;  // and begins where that one's last word was broken
  bool ends_in_word = false;
};

// As Python's logging and glog begin a line: "WARNING:name:", "E1223 05:18:02".
bool has_level(std::string_view line) {
  constexpr std::string_view kLevels[] = {"DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "FATAL"};
  const size_t end = line.find_first_of(": ");
  if (std::find(std::begin(kLevels), std::end(kLevels), line.substr(0, end)) != std::end(kLevels))
    return true;
  const bool is_glog = end == 5 && std::string_view("IWEF").find(line.front()) != std::string_view::npos;
  return is_glog && std::all_of(line.begin() + 1, line.begin() + 5, is_digit);
}

// "stderr:", "(worker)", "[node3]"; empty: it begins with no such word.
std::string_view mark_of(std::string_view line) {
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  const bool is_mark = word.size() > 1 && word.size() < line.size() &&
                       (word.back() == ':' || word.back() == ']' || word.back() == ')');
  return is_mark ? word : std::string_view();
}

bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A row or a heading of nccl-tests: all have one length, and none is the rest of another.
bool is_table_line(std::string_view line) { return line.front() == '#' || test_row_of(line).has_value(); }

}  // namespace

bool may_continue(std::string_view line) {
  line = trimmed(line);  // of a paste that somebody indented
  if (line.empty() || is_table_line(line)) return false;
  Head head;
  if (line.front() == '[' || line.front() == '(' || has_level(line) || find_head(line, head) ||
      find_weak_head(line, head))
    return false;
  // A time of day or a date.
  const std::string_view begin = line.substr(0, 10);
  const auto is_sign = [](char c) { return c == ':' || c == '-'; };
  return !(is_digit(line.front()) && std::count_if(begin.begin(), begin.end(), is_sign) >= 2);
}

bool begin_alike(std::string_view previous, std::string_view line) {
  const std::string_view mark = mark_of(line);
  return !mark.empty() && mark == mark_of(previous);
}

size_t wrap_width(std::string_view text, bool has_markup) {
  constexpr size_t kLeast = 60, kMost = 400, kLinesMost = 4096;
  std::vector<Line> lines;
  std::string previous_mark;
  LineSplitter splitter;
  if (has_markup) splitter.take_markup();
  const auto visit = [&](std::string_view line) {
    if (lines.size() >= kLinesMost) return;
    const bool is_inside =
        !lines.empty() && lines.back().ends_in_word && !line.empty() && is_word(line.front());
    const std::string_view mark = mark_of(line);
    const bool continues = may_continue(line) && (mark.empty() || mark != previous_mark);
    previous_mark = mark;
    lines.push_back({line.size(), continues, is_inside, !line.empty() && is_word(line.back())});
  };
  splitter.feed(text, visit);
  splitter.finish(visit);
  struct Length {
    size_t lines = 0, continued = 0, inside_words = 0;
  };
  std::map<size_t, Length> lengths;
  size_t greatest = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    greatest = std::max(greatest, lines[i].size);
    if (i + 1 == lines.size() || lines[i].size < kLeast || lines[i].size > kMost) continue;
    Length& length = lengths[lines[i].size];
    ++length.lines;
    length.continued += lines[i + 1].continues ? 1 : 0;
    length.inside_words += lines[i + 1].continues && lines[i + 1].is_inside_word ? 1 : 0;
  }
  // Of the greatest length most lines go on; of another, which a cut beginning or a comment may exceed, most
  // within a word.
  size_t width = 0;
  for (const auto& [size, length] : lengths) {
    const bool goes_on = length.lines >= 2 && length.continued * 3 >= length.lines * 2;
    if (goes_on && (size == greatest || length.inside_words * 3 >= length.lines * 2)) width = size;
  }
  return width;
}

}  // namespace lockstep::readers::nccl_log
