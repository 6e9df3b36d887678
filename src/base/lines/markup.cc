// SPDX-License-Identifier: Apache-2.0
// Undoes what web pages and JSON put around logs that people saved. Only known tags and characters are
// undone, since "<host>" and "a < b" are words of logs, too. A tag is looked for within its greatest length,
// so a line of open brackets costs no more than its length times that.
#include "base/lines/markup.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/ascii.h"

namespace lockstep {
namespace {

constexpr size_t kNo = std::string_view::npos;
constexpr size_t kTagMost = 256;  // with its attributes

constexpr std::pair<std::string_view, char> kNames[] = {{"&lt;", '<'},    {"&gt;", '>'},   {"&quot;", '"'},
                                                        {"&apos;", '\''}, {"&nbsp;", ' '}, {"&amp;", '&'}};
constexpr std::string_view kEscape = "\\u00";

// Those that people's pages put around logs, by name.
bool is_tag_name(std::string_view name) {
  constexpr std::string_view kTags[] = {
      "a",    "b",      "blockquote", "body",  "br",    "code", "details", "div", "em",  "font", "h1",
      "h2",   "h3",     "h4",         "html",  "i",     "li",   "ol",      "p",   "pre", "samp", "small",
      "span", "strong", "summary",    "table", "tbody", "td",   "th",      "tr",  "u",   "ul"};
  return std::find(std::begin(kTags), std::end(kTags), name) != std::end(kTags);
}

// Length of the tag that begins here; 0: none does.
size_t tag_length(std::string_view text) {
  if (!text.starts_with('<')) return 0;
  const size_t begin = text.starts_with("</") ? 2 : 1;
  const size_t end = text.substr(0, kTagMost).find('>');
  const size_t name_end = std::min(text.find_first_of(" />", begin), text.size());
  if (end == kNo || name_end > end || !is_tag_name(text.substr(begin, name_end - begin))) return 0;
  return end + 1;
}

// "39;" or "x27;": the character, and how long that is; 0: it is none that a keyboard types.
size_t number_length(std::string_view text, char& character) {
  const int base = text.starts_with('x') ? 16 : 10;
  const size_t begin = base == 16 ? 1 : 0;
  const size_t end = text.substr(0, 8).find(';');
  unsigned value = 0;
  if (end == kNo) return 0;
  const auto [at, error] = std::from_chars(text.data() + begin, text.data() + end, value, base);
  if (error != std::errc() || at != text.data() + end) return 0;
  // 27 begins a colour, which LineSplitter takes away afterwards.
  constexpr unsigned kHardBlank = 160, kColour = 27;
  if (value != kHardBlank && value != kColour && (value < 0x20 || value > 0x7E)) return 0;
  character = value == kHardBlank ? ' ' : static_cast<char>(value);
  return end + 1;
}

// Length of what stands for one character here; 0: nothing does.
size_t named_length(std::string_view text, char& character) {
  if (text.starts_with("&#")) {
    const size_t length = number_length(text.substr(2), character);
    return length == 0 ? 0 : length + 2;
  }
  if (text.starts_with(kEscape)) {
    unsigned value = 0;
    const char* begin = text.data() + kEscape.size();
    const char* end = text.data() + std::min(text.size(), kEscape.size() + 2);
    const auto [at, error] = std::from_chars(begin, end, value, 16);
    const bool is_known = value == '<' || value == '>' || value == '&' || value == '\'' || value == '\033';
    if (error != std::errc() || at != begin + 2 || !is_known) return 0;
    character = static_cast<char>(value);
    return kEscape.size() + 2;
  }
  for (const auto& [name, value] : kNames) {
    if (!text.starts_with(name)) continue;
    character = value;
    return name.size();
  }
  return 0;
}

}  // namespace

bool has_markup(std::string_view text) {
  char character = 0;
  for (size_t at = text.find_first_of("<&\\"); at != kNo; at = text.find_first_of("<&\\", at + 1)) {
    if (tag_length(text.substr(at)) > 0 || named_length(text.substr(at), character) > 0) return true;
  }
  return false;
}

std::string_view without_markup(std::string_view line, std::string& scratch) {
  size_t at = line.find_first_of("<&\\");
  if (at == kNo) return line;
  scratch.assign(line.substr(0, at));
  bool ends_in_tag = false;
  while (at < line.size()) {
    const std::string_view rest = line.substr(at);
    char character = rest.front();
    if (const size_t tag = tag_length(rest); tag > 0) {
      // What a tag parts stays apart.
      const bool is_break = rest.starts_with("<br") || rest.starts_with("</p") || rest.starts_with("</t") ||
                            rest.starts_with("</li");
      if (is_break && !scratch.empty() && scratch.back() != ' ') scratch += ' ';
      ends_in_tag = true;
      at += tag;
      continue;
    }
    // Once, from left to right: "&amp;lt;" is the text "&lt;" and no bracket.
    at += std::max<size_t>(named_length(rest, character), 1);
    scratch += character;
    ends_in_tag = false;
  }
  if (ends_in_tag) scratch.erase(scratch.find_last_not_of(' ') + 1);
  return scratch;
}

}  // namespace lockstep
