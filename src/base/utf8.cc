// SPDX-License-Identifier: Apache-2.0
// Databases, JSON and Perfetto refuse text that is not UTF-8, and terminals obey some that is. Both are
// mended where text from outside enters or is shown, byte for byte, so that one bad name costs its own
// characters and nothing else.
#include "base/utf8.h"

#include <cstdint>

namespace lockstep {

size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned first = byte(0);
  if (first < 0x80) return 1;
  // 0xc0 and 0xc1 would begin overlong forms of ASCII, 0xf5 and above numbers beyond U+10FFFF.
  size_t length = first >= 0xc2 && first < 0xe0   ? 2
                  : first >= 0xe0 && first < 0xf0 ? 3
                  : first >= 0xf0 && first < 0xf5 ? 4
                                                  : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  bool surrogate = first == 0xed && byte(1) >= 0xa0;
  bool too_large = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t length = utf8_length(text);
    if (length == 0) {
      out += '?';
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string_view cut_utf8(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

namespace {

// Of valid UTF-8, by its first byte.
size_t character_size(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

bool is_shown(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) >= 0x20 && byte(0) != 0x7f;
  if (character.size() == 2) {
    const bool is_c1 = byte(0) == 0xc2 && byte(1) < 0xa0;
    return !is_c1 && character != "\u061c";
  }
  if (character.size() == 4 || byte(0) < 0xe2) return true;
  const auto is_between = [&](std::string_view from, std::string_view to) {
    return character >= from && character <= to;
  };
  // U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 turn the direction of text. The others have no
  // width, or end a line.
  return !is_between("\u200b", "\u200f") && !is_between("\u2028", "\u202e") &&
         !is_between("\u2060", "\u206f") && character != "\ufeff";
}

}  // namespace

std::string shown_name(std::string_view text, size_t most) {
  constexpr std::string_view kCut = "...";
  const bool is_cut = text.size() > most;
  const std::string valid = valid_utf8(is_cut ? cut_utf8(text, most - kCut.size()) : text);
  std::string out;
  for (size_t i = 0; i < valid.size();) {
    const size_t size = character_size(valid[i]);
    const std::string_view character = std::string_view(valid).substr(i, size);
    if (is_shown(character))
      out += character;
    else
      out += '?';
    i += size;
  }
  return is_cut ? out + std::string(kCut) : out;
}

}  // namespace lockstep
