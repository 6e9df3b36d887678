// SPDX-License-Identifier: Apache-2.0
// Goes byte by byte and keeps its state, since a piece may end within a unit and a unit within a pair. Half a
// pair has no UTF-8 form and becomes a question mark.
#include "base/lines/utf16.h"

namespace lockstep {

bool Utf16::is(std::string_view first_bytes) {
  return first_bytes.starts_with("\xFF\xFE") || first_bytes.starts_with("\xFE\xFF");
}

std::string_view Utf16::utf8(std::string_view piece) {
  out_.clear();
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (!has_byte_) {
      byte_ = byte;
      has_byte_ = true;
      continue;
    }
    has_byte_ = false;
    // The first unit is the mark of the byte order, and no text.
    if (!knows_order_) {
      knows_order_ = true;
      big_end_first_ = byte_ == 0xFE;
      continue;
    }
    unit(static_cast<uint16_t>(big_end_first_ ? byte_ << 8 | byte : byte << 8 | byte_));
  }
  return out_;
}

void Utf16::unit(uint16_t unit) {
  const bool is_high = unit >= 0xD800 && unit < 0xDC00, is_low = unit >= 0xDC00 && unit < 0xE000;
  if (high_ != 0 && is_low) {
    append(0x10000 + (static_cast<uint32_t>(high_ - 0xD800) << 10) + (unit - 0xDC00U));
    high_ = 0;
    return;
  }
  if (high_ != 0) out_ += '?';
  high_ = is_high ? unit : uint16_t{0};
  if (is_low) out_ += '?';
  if (!is_high && !is_low) append(unit);
}

void Utf16::append(uint32_t character) {
  const auto tail = [&](uint32_t bits) { out_ += static_cast<char>(0x80 | (bits & 0x3F)); };
  if (character < 0x80) {
    out_ += static_cast<char>(character);
  } else if (character < 0x800) {
    out_ += static_cast<char>(0xC0 | character >> 6);
    tail(character);
  } else if (character < 0x10000) {
    out_ += static_cast<char>(0xE0 | character >> 12);
    tail(character >> 6);
    tail(character);
  } else {
    out_ += static_cast<char>(0xF0 | character >> 18);
    tail(character >> 12);
    tail(character >> 6);
    tail(character);
  }
}

}  // namespace lockstep
