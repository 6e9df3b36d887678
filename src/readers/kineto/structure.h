// SPDX-License-Identifier: Apache-2.0
// 64 bytes of JSON as bit masks: bit i is byte i.
#pragma once
#include <cstdint>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lockstep::readers::kineto {

// `opens` and `closes` are of objects and arrays alike; `controls` are bytes below 32, which no JSON text
// holds.
struct Masks {
  uint64_t quotes = 0, backslashes = 0, opens = 0, closes = 0, controls = 0;
};

#ifdef __SSE2__
// 64 bytes have to be readable; EventStream::kPadding sees to that at the end of a file.
inline Masks masks_of(const char* bytes) {
  Masks masks;
  for (int i = 0; i < 4; ++i) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes) + i);
    const auto mask = [](__m128i matches) {
      return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(matches))};
    };
    const auto is = [block](char c) { return _mm_cmpeq_epi8(block, _mm_set1_epi8(c)); };
    // '[' and '{' differ in one bit, and so do ']' and '}'.
    const __m128i folded = _mm_or_si128(block, _mm_set1_epi8(0x20));
    masks.quotes |= mask(is('"')) << 16 * i;
    masks.backslashes |= mask(is('\\')) << 16 * i;
    masks.opens |= mask(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{'))) << 16 * i;
    masks.closes |= mask(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}'))) << 16 * i;
    masks.controls |= mask(_mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block)) << 16 * i;
  }
  return masks;
}
#else
inline Masks masks_of(const char* bytes) {
  Masks masks;
  for (int i = 0; i < 64; ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    masks.quotes |= uint64_t{c == '"'} << i;
    masks.backslashes |= uint64_t{c == '\\'} << i;
    masks.opens |= uint64_t{(c | 0x20) == '{'} << i;
    masks.closes |= uint64_t{(c | 0x20) == '}'} << i;
    masks.controls |= uint64_t{c < 0x20} << i;
  }
  return masks;
}
#endif

// Bit i: the number of bits of `quotes` up to and with i is odd, so byte i lies in a text (its opening quote
// included).
inline uint64_t inside(uint64_t quotes) {
  for (int shift = 1; shift < 64; shift *= 2) quotes ^= quotes << shift;
  return quotes;
}

// Removes quotes that a backslash before them makes a part of the text. `escaped`: the first byte follows a
// lone backslash; set to that of the byte behind the block.
inline void drop_escaped(Masks& masks, bool& escaped) {
  if (masks.backslashes == 0 && !escaped) return;
  uint64_t escapes = 0;
  bool next = escaped;
  for (int i = 0; i < 64; ++i) {
    const uint64_t bit = uint64_t{1} << i;
    if (next) {
      escapes |= bit;
      next = false;
    } else {
      next = (masks.backslashes & bit) != 0;
    }
  }
  escaped = next;
  masks.quotes &= ~escapes;
}

}  // namespace lockstep::readers::kineto
