// SPDX-License-Identifier: Apache-2.0
// What a server makes of compressed frames, for tests: written from LZ4's block format, apart from the
// compressor.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lockstep::store::clickhouse {

inline size_t little_endian(std::string_view bytes, size_t at, size_t count) {
  size_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

inline std::string unpacked_block(std::string_view block) {
  std::string body;
  size_t at = 0;
  const auto length = [&](size_t begun) {
    for (size_t more = begun == 15 ? 255 : 0; more == 255; begun += more)
      more = static_cast<unsigned char>(block.at(at++));
    return begun;
  };
  while (at < block.size()) {
    const auto token = static_cast<unsigned char>(block[at++]);
    const size_t literals = length(token >> 4);
    body += block.substr(at, literals);
    at += literals;
    if (at >= block.size()) return body;
    const size_t distance = little_endian(block, at, 2);
    at += 2;
    const size_t match = length(token & 15) + 4;
    if (distance == 0 || distance > body.size()) {
      ADD_FAILURE() << "a match before the beginning";
      return body;
    }
    for (size_t i = 0; i < match; ++i) body += body[body.size() - distance];
  }
  ADD_FAILURE() << "a block without last literals";
  return body;
}

inline std::string unpacked_frames(std::string_view frames) {
  std::string body;
  while (!frames.empty()) {
    EXPECT_EQ(frames.substr(0, 16), std::string(16, '\0')) << "a checksum";
    EXPECT_EQ(frames.at(16), static_cast<char>(0x82));
    const size_t size = little_endian(frames, 17, 4), raw = little_endian(frames, 21, 4);
    const std::string part = unpacked_block(frames.substr(25, size - 9));
    EXPECT_EQ(part.size(), raw);
    body += part;
    frames.remove_prefix(16 + size);
  }
  return body;
}

}  // namespace lockstep::store::clickhouse
