// SPDX-License-Identifier: Apache-2.0
// A small matcher instead of std::regex: one pass from left to right, no backtracking, no allocation, so the
// cost of a line is bounded however it is made. A word ends where the literal behind it begins; that is all
// the lookahead that NCCL's messages need.
#include "readers/nccl_log/pattern.h"

#include <charconv>
#include <utility>

#include "base/ascii.h"
#include "base/result.h"

namespace lockstep::readers::nccl_log {
namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

template <class Accept>
size_t skip(std::string_view text, size_t at, Accept accept) {
  while (at < text.size() && accept(text[at])) ++at;
  return at;
}

}  // namespace

Pattern::Part Pattern::part_at(std::string_view source, size_t& length) {
  static constexpr std::pair<std::string_view, Part> kHoles[] = {
      {"{int}", Part::kInt},   {"{hex}", Part::kHex},   {"{num}", Part::kNum},  {"{word}", Part::kWord},
      {"{skip}", Part::kSkip}, {"{text}", Part::kText}, {"{rest}", Part::kRest}};
  for (const auto& [name, part] : kHoles) {
    if (source.substr(0, name.size()) != name) continue;
    length = name.size();
    return part;
  }
  return Part::kLiteral;
}

Pattern::Pattern(std::string_view source) {
  whole_ = source.ends_with('$');
  if (whole_) source.remove_suffix(1);
  size_t begin = 0, holes = 0;
  // One step beyond the end, which closes the last literal.
  for (size_t at = 0; at <= source.size();) {
    size_t length = 0;
    const Part part = at < source.size() ? part_at(source.substr(at), length) : Part::kLiteral;
    if (part == Part::kLiteral && at < source.size()) {
      ++at;
      continue;
    }
    if (at > begin) tokens_.push_back({Part::kLiteral, source.substr(begin, at - begin)});
    if (at == source.size()) break;
    tokens_.push_back({part, {}});
    holes += part == Part::kSkip ? 0 : 1;
    begin = at += length;
  }
  // Patterns are our own: too many holes are a mistake in a .def file.
  LOCKSTEP_CHECK(holes <= Captures::kMost);
}

std::string_view Pattern::head() const {
  return !tokens_.empty() && tokens_[0].part == Part::kLiteral ? tokens_[0].literal : std::string_view();
}

std::string_view Pattern::literal_after(size_t i) const {
  return i + 1 < tokens_.size() ? tokens_[i + 1].literal : std::string_view();
}

size_t Pattern::take(size_t i, std::string_view text, size_t at) const {
  constexpr size_t kNo = std::string_view::npos;
  const auto some = [&](size_t end) { return end > at ? end : kNo; };
  switch (tokens_[i].part) {
    case Part::kLiteral:
      return text.substr(at).starts_with(tokens_[i].literal) ? at + tokens_[i].literal.size() : kNo;
    case Part::kInt: {
      const size_t digits = at < text.size() && text[at] == '-' ? at + 1 : at;
      const size_t end = skip(text, digits, is_digit);
      return end > digits ? end : kNo;
    }
    case Part::kHex: {
      const size_t digits = text.substr(at).starts_with("0x") ? at + 2 : at;
      const size_t end = skip(text, digits, is_hex);
      return end > digits ? end : kNo;
    }
    case Part::kNum:
      return some(skip(text, at, [](char c) { return is_digit(c) || c == '.'; }));
    case Part::kWord:
    case Part::kSkip: {
      const size_t blank = skip(text, at, [](char c) { return c != ' '; });
      const std::string_view next = literal_after(i);
      // Without a literal behind it, the blank ends a word.
      if (next.empty() || at >= text.size()) return some(blank);
      // The literal may begin with the blank itself, so the search reaches as far behind it.
      const size_t found = text.substr(0, blank + next.size()).find(next, at + 1);
      return found == kNo || found > blank ? kNo : found;
    }
    case Part::kText: {
      const std::string_view next = literal_after(i);
      // The first place alone: trying later ones would be backtracking.
      return next.empty() ? text.size() : text.find(next, at);
    }
    case Part::kRest:
      break;
  }
  return text.size();
}

bool Pattern::match(std::string_view text, Captures& captures) const {
  captures.count = 0;
  size_t at = 0;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const size_t end = take(i, text, at);
    if (end == std::string_view::npos) return false;
    if (tokens_[i].part != Part::kLiteral && tokens_[i].part != Part::kSkip)
      captures.text[captures.count++] = text.substr(at, end - at);
    at = end;
  }
  return !whole_ || at == text.size();
}

int64_t to_int(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : 0;
}

int32_t to_small(std::string_view text) {
  return text.empty() || text.size() > 9 ? -1 : static_cast<int32_t>(to_int(text));
}

uint64_t to_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() ? value : 0;
}

double to_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : 0;
}

}  // namespace lockstep::readers::nccl_log
