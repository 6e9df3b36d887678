// SPDX-License-Identifier: Apache-2.0
// Binary identifiers as text, the way the system prints them. Empty when all bytes are zero: unknown.
#pragma once
#include <algorithm>
#include <span>
#include <string>

namespace lockstep::readers::native {

inline std::string uuid_text(std::span<const unsigned char, 16> bytes) {
  if (std::all_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b == 0; })) return {};
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace lockstep::readers::native
