// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/wire/lz4_frames.h"

#include <random>

#include "store/clickhouse/wire/unpacked_frames.h"

namespace lockstep::store::clickhouse {
namespace {

void expect_whole(const std::string& body) {
  const std::string frames = lz4_frames(body);
  EXPECT_EQ(unpacked_frames(frames), body) << body.size();
  EXPECT_LE(frames.size(), body.size() + body.size() / 200 + 64);
}

TEST(Lz4Frames, KeepEveryLength) {
  std::string body;
  for (size_t size = 0; size < 600; ++size) {
    expect_whole(std::string(size, 'x'));
    expect_whole(body);
    body += static_cast<char>(size * 7 % 11);
  }
  EXPECT_TRUE(lz4_frames("").empty());
}

TEST(Lz4Frames, KeepBytesOfAnyKind) {
  std::mt19937 random(1);
  for (const unsigned letters : {2U, 5U, 256U}) {
    for (const size_t size : {size_t{13}, size_t{70'000}, (size_t{1} << 20) + 7}) {
      std::string body;
      while (body.size() < size) body += static_cast<char>(random() % letters);
      expect_whole(body);
    }
  }
  // A match as far away as one can be, and one too far.
  std::string far = "header, then 0123456789abcdef";
  for (const size_t gap : {size_t{65'519}, size_t{65'520}, size_t{70'000}}) {
    std::string body = far;
    while (body.size() < far.size() + gap) body += static_cast<char>(random());
    expect_whole(body + "0123456789abcdef, then the end");
  }
}

// Columns of numbers, as blocks of rows have them.
TEST(Lz4Frames, AreSmallWhereRowsAreAlike) {
  std::string body;
  for (uint64_t row = 0; row < 100'000; ++row) {
    const uint64_t value = row / 64;
    body.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  EXPECT_LT(lz4_frames(body).size(), body.size() / 20);
}

}  // namespace
}  // namespace lockstep::store::clickhouse
