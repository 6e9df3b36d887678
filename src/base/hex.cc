// SPDX-License-Identifier: Apache-2.0
#include "base/hex.h"

#include <charconv>

namespace lockstep {

std::string hex(uint64_t number) {
  char digits[16];
  return "0x" + std::string(digits, std::to_chars(digits, digits + sizeof digits, number, 16).ptr);
}

std::string hex16(uint64_t number) {
  const std::string digits = hex(number).substr(2);
  return std::string(16 - digits.size(), '0') + digits;
}

std::string hex_of_bytes(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

// All of the text has to be digits: what leads a damaged number would be another id.
uint64_t number_of_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

}  // namespace lockstep
