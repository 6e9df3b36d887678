// SPDX-License-Identifier: Apache-2.0
#include "exporters/chrome_json/json_writer.h"

#include <algorithm>
#include <charconv>

namespace lockstep::exporters::chrome_json {
namespace {

// Length of the well-formed UTF-8 sequence at the start, 0 if there is none.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned lead = byte(0);
  size_t length = lead < 0x80                   ? 1
                  : lead >= 0xc2 && lead < 0xe0 ? 2
                  : lead >= 0xe0 && lead < 0xf0 ? 3
                  : lead >= 0xf0 && lead < 0xf5 ? 4
                                                : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  bool outside = (lead == 0xed && byte(1) >= 0xa0) || (lead == 0xf4 && byte(1) >= 0x90);
  return overlong || outside ? 0 : length;
}

}  // namespace

std::string json_string(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out(1, '"');
  while (!text.empty()) {
    auto c = static_cast<unsigned char>(text[0]);
    size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else if (length == 0) {
      out += '?';
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length ? length : 1);
  }
  out += '"';
  return out;
}

JsonWriter& JsonWriter::raw_in_pieces(std::string_view text) {
  while (!text.empty()) {
    size_t size = std::min(text.size(), Buffer::kBytes - buffer_.size);
    std::memcpy(buffer_.data.get() + buffer_.size, text.data(), size);
    buffer_.size += size;
    text.remove_prefix(size);
    if (buffer_.size == Buffer::kBytes) flush();
  }
  return *this;
}

JsonWriter& JsonWriter::number(uint64_t value) {
  char* at = number_space();
  take_number(std::to_chars(at, at + kLongestNumber, value).ptr);
  return *this;
}

JsonWriter& JsonWriter::signed_number(int64_t value) {
  char* at = number_space();
  take_number(std::to_chars(at, at + kLongestNumber, value).ptr);
  return *this;
}

JsonWriter& JsonWriter::micros(int64_t ns) {
  char* at = number_space();
  char* limit = at + kLongestNumber;
  auto size = static_cast<uint64_t>(ns);
  if (ns < 0) {
    *at++ = '-';
    size = 0 - size;
  }
  at = std::to_chars(at, limit, size / 1000).ptr;
  auto rest = static_cast<unsigned>(size % 1000);
  *at++ = '.';
  *at++ = static_cast<char>('0' + rest / 100);
  *at++ = static_cast<char>('0' + rest / 10 % 10);
  *at++ = static_cast<char>('0' + rest % 10);
  take_number(at);
  return *this;
}

}  // namespace lockstep::exporters::chrome_json
