// SPDX-License-Identifier: Apache-2.0
// Most lines are plain text and stay where they lie, which is found out eight bytes at a step. Only the
// others are copied, character by character, without what is no text.
#include "base/lines/line_splitter.h"

#include <algorithm>

#include "base/lines/markup.h"
#include "base/lines/utf16.h"
#include "base/utf8.h"

namespace lockstep {
namespace {

// Length of what is no text at `at`: a colour, a character without width, a zero byte. 0: it is text.
size_t mark_at(std::string_view line, size_t at) {
  if (line[at] == '\0' || line[at] == '\r') return 1;
  if (line[at] == '\033') {
    // A sequence that nothing ends takes the rest of the line.
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

// Nothing in it but what a keyboard types. Eight bytes at a step: most lines are.
bool is_plain(std::string_view line) {
  // The high bit of a byte is set where it is below 0x20 or above 0x7E. A borrow may set it in the next byte,
  // but only where this byte was bad already.
  constexpr uint64_t kEach = 0x0101010101010101, kHigh = 0x80 * kEach;
  size_t at = 0;
  uint64_t odd = 0;
  for (; at + 8 <= line.size(); at += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, line.data() + at, 8);
    const uint64_t no_delete = eight ^ (0x7F * kEach);
    odd |= eight | (eight - 0x20 * kEach) | (no_delete - kEach);
  }
  for (; at < line.size(); ++at) {
    const auto byte = static_cast<unsigned char>(line[at]);
    odd |= byte < 0x20 || byte >= 0x7F ? kHigh : 0;
  }
  return (odd & kHigh) == 0;
}

// "> > text" of mails, ">> text" and, of an empty line, ">".
std::string_view without_quote_marks(std::string_view line) {
  while (line.starts_with("> ") || line.starts_with(">>") || line == ">")
    line.remove_prefix(line.starts_with("> ") ? 2 : 1);
  return line;
}

// Bells, backspaces and the like are what progress bars are made of.
bool is_no_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && (byte < '\a' || byte > '\r') && byte != '\0' && byte != '\033') || byte == 0x7F;
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

// The cut is ours, and no damage.
void LineSplitter::drop_half_character() {
  size_t begin = carry_.size() - 1;
  while (begin + 4 > carry_.size() && (static_cast<unsigned char>(carry_[begin]) & 0xC0) == 0x80) --begin;
  if (utf8_length(std::string_view(carry_).substr(begin)) != 0) return;
  cut_bytes_ += carry_.size() - begin;
  carry_.resize(begin);
}

std::string_view LineSplitter::clean(std::string_view line) {
  is_damaged_ = false;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  // Markup goes first: it may spell the escape character of a colour.
  if (takes_markup_) line = without_markup(line, plain_);
  if (!is_plain(line)) line = without_marks(line);
  return without_quote_marks(line);
}

std::string_view LineSplitter::without_marks(std::string_view line) {
  scratch_.clear();
  for (size_t at = 0; at < line.size();) {
    const size_t mark = mark_at(line, at);
    if (line[at] == '\0') {
      ++zero_bytes_;
      is_damaged_ = is_damaged_ || !scratch_.empty();
    }
    is_damaged_ = is_damaged_ || is_no_text(line[at]);
    const bool is_hard_blank = line.substr(at, 2) == "\xC2\xA0";
    if (mark == 0) scratch_ += is_hard_blank ? ' ' : line[at];
    at += is_hard_blank ? 2 : std::max<size_t>(mark, 1);
  }
  is_damaged_ =
      is_damaged_ || (scratch_.find("NCCL") != std::string::npos && valid_utf8(scratch_) != scratch_);
  return scratch_;
}

std::string plain_lines(std::string_view text) {
  constexpr size_t kSample = 64 << 10;
  Utf16 utf16;
  if (Utf16::is(text)) text = utf16.utf8(text);
  LineSplitter splitter;
  if (has_markup(text.substr(0, kSample))) splitter.take_markup();
  std::string plain;
  plain.reserve(text.size());
  const auto visit = [&](std::string_view line) { plain.append(line).push_back('\n'); };
  splitter.feed(text, visit);
  splitter.finish(visit);
  return plain;
}

}  // namespace lockstep
