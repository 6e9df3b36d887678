// SPDX-License-Identifier: Apache-2.0
// A number that stands for some bytes and texts, in their order. Against chance, not against forgery. Stores
// hold digests: how they come about never changes.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lockstep::store::clickhouse {

// Texts count with their lengths, so that "ab", "c" and "a", "bc" differ.
class Digest {
 public:
  Digest& add(std::string_view bytes) {
    add(bytes.size());
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, std::min(bytes.size() - at, sizeof word));
      add(word);
    }
    return *this;
  }
  Digest& add(uint64_t word) {
    state_ = std::rotl((state_ ^ word) * 0x9e3779b97f4a7c15, 29) * 0xff51afd7ed558ccd;
    return *this;
  }
  // Of what was added so far; more may follow.
  uint64_t value() const { return state_ ^ state_ >> 32; }

 private:
  uint64_t state_ = 0x243f6a8885a308d3;
};

}  // namespace lockstep::store::clickhouse
