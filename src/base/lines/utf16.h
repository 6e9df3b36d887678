// SPDX-License-Identifier: Apache-2.0
// UTF-16, as Windows' shells redirect into files, as UTF-8.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

class Utf16 {
 public:
  // By the mark at the beginning of a text.
  static bool is(std::string_view first_bytes);
  // The next piece of a text that began with a mark; valid until the next call. What is half a character
  // waits for the next piece; what is none becomes '?'.
  std::string_view utf8(std::string_view piece);

 private:
  void unit(uint16_t unit);
  void append(uint32_t character);

  bool knows_order_ = false, big_end_first_ = false, has_byte_ = false;
  unsigned char byte_ = 0;
  uint16_t high_ = 0;  // the first half of a pair
  std::string out_;
};

}  // namespace lockstep
