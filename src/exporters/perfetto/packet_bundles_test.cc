// SPDX-License-Identifier: Apache-2.0
#include "exporters/perfetto/packet_bundles.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <vector>

#include "exporters/perfetto/fields.h"
#include "exporters/perfetto/proto_bytes.h"

namespace lockstep::exporters::perfetto {
namespace {

std::string packet(std::string_view content) {
  ProtoBytes bytes;
  return std::string(bytes.bytes(field::trace::kPacket, content).view());
}

// Two alike in three, as packets are, and one that nothing can be said of in fewer bytes.
std::vector<std::string> packets(size_t count) {
  std::mt19937_64 random(7);
  std::vector<std::string> all;
  for (size_t i = 0; i < count; ++i) {
    std::string content(i % 300, static_cast<char>('a' + i % 3));
    if (i % 3 == 0)
      std::generate(content.begin(), content.end(), [&] { return static_cast<char>(random()); });
    all.push_back(packet("\x42" + content));
  }
  return all;
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += one;
  return text;
}

uint64_t varint(std::string_view bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.at(at++));
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

struct Expanded {
  std::string plain;  // what the bundles hold, and what stands between them
  size_t bundles = 0, largest = 0;
};

Expanded expand(std::string_view file) {
  Expanded expanded;
  std::string room(8 << 20, '\0');
  for (size_t at = 0; at < file.size();) {
    const size_t begin = at;
    EXPECT_EQ(varint(file, at), tag(field::trace::kPacket, kLengthDelimited));
    const uint64_t size = varint(file, at);
    const size_t end = at + size;
    EXPECT_LE(end, file.size());
    if (varint(file, at) != tag(field::packet::kCompressed, kLengthDelimited)) {
      expanded.plain += file.substr(begin, end - begin);
    } else {
      const uint64_t length_inside = varint(file, at);
      EXPECT_EQ(at + length_inside, end) << "nothing else is in it";
      uLongf length = room.size();
      EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(room.data()), &length,
                           reinterpret_cast<const Bytef*>(file.data() + at), end - at),
                Z_OK);
      expanded.plain += room.substr(0, length);
      expanded.largest = std::max(expanded.largest, end - begin);
      ++expanded.bundles;
    }
    at = end;
  }
  return expanded;
}

std::string packed(std::string_view bytes, size_t piece) {
  auto bundles = std::move(PacketBundles::create()).value();
  std::string file;
  for (size_t at = 0; at < bytes.size(); at += piece) file += bundles->pack(bytes.substr(at, piece));
  return file;
}

TEST(PacketBundles, HoldEveryPacketWhereverBuffersEnd) {
  const std::string plain = joined(packets(3000));
  for (const size_t piece : {size_t{1}, size_t{127}, size_t{4096}, plain.size() - 1, plain.size()}) {
    const std::string file = packed(plain, piece);
    EXPECT_EQ(expand(file).plain, plain) << piece;
    if (piece >= 4096) {
      EXPECT_LT(file.size(), plain.size() / 2) << piece;
      EXPECT_GE(expand(file).bundles, plain.size() / piece / 2) << piece;
    }
  }
}

TEST(PacketBundles, WhatPackingMakesLargerStaysPlain) {
  std::mt19937_64 random(3);
  std::string content(5000, '\0');
  std::generate(content.begin(), content.end(), [&] { return static_cast<char>(random()); });
  const std::string plain = packet("\x42" + content);
  EXPECT_EQ(packed(plain, plain.size()), plain);
  EXPECT_EQ(packed(packet("\x42"), 1), packet("\x42"));
}

TEST(PacketBundles, AreAsSmallAsTheFormatAsks) {
  std::mt19937_64 random(5);
  std::string noise(3 << 20, '\0');
  std::generate(noise.begin(), noise.end(), [&] { return static_cast<char>(random() & 0x0f); });
  const std::string plain =
      packet("\x42" + noise) + packet("\x42" + std::string(3 << 20, 'x')) + packet("\x42");
  const Expanded expanded = expand(packed(plain, 256 << 10));
  EXPECT_EQ(expanded.plain, plain);
  EXPECT_GE(expanded.bundles, 1u);
  EXPECT_LT(expanded.largest, size_t{512} << 10);
}

}  // namespace
}  // namespace lockstep::exporters::perfetto
