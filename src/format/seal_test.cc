// SPDX-License-Identifier: Apache-2.0
#include "format/seal.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace lockstep::format {
namespace {

uint32_t crc_of(std::string_view text, bool portable) {
  std::vector<uint64_t> words(text.size() / 8);
  std::memcpy(words.data(), text.data(), words.size() * 8);
  const Crc32c crc;
  return ~(portable ? crc32c_detail::portable(Crc32c::kBegin, words.data(), words.size())
                    : crc.add(Crc32c::kBegin, words.data(), words.size()));
}

// RFC 3720, B.4.
TEST(Crc32c, KnownSums) {
  for (const bool portable : {true, false}) {
    EXPECT_EQ(crc_of(std::string(32, '\0'), portable), 0x8a9136aau);
    EXPECT_EQ(crc_of(std::string(32, '\xff'), portable), 0x62a8ab43u);
    std::string up;
    for (char c = 0; c < 32; ++c) up += c;
    EXPECT_EQ(crc_of(up, portable), 0x46dd794eu);
  }
}

TEST(Crc32c, SumsUnderMasksAreThoseOfMaskedWords) {
  constexpr uint64_t kMask[3] = {~uint64_t{0}, 0xff00ff00ff, 0}, kOther[3] = {0, 0xff00, ~uint64_t{0}};
  const std::string text = "three words of eight by.";
  uint64_t words[3], under[3], other[3];
  std::memcpy(words, text.data(), sizeof words);
  for (int i = 0; i < 3; ++i) under[i] = words[i] & kMask[i], other[i] = words[i] & kOther[i];
  const Crc32c crc;
  for (const bool portable : {true, false}) {
    Crc32c::MaskedSums sums{1, 2, 3};
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    if (portable)
      crc32c_detail::portable_masked(sums, bytes, kMask, kOther, 3);
    else
      crc.add_masked(sums, bytes, kMask, kOther, 3);
    EXPECT_EQ(sums.first, crc.add(1, under, 3));
    EXPECT_EQ(sums.second, crc.add(2, under, 3));
    EXPECT_EQ(sums.other, crc.add(3, other, 3));
  }
}

struct Chunk {
  alignas(64) unsigned char bytes[kChunkBytes] = {};
  Chunk() {
    ChunkHeader header{};
    header.magic = kChunkMagic;
    header.purpose = Purpose::kRecords;
    header.log = 1;
    std::memcpy(bytes, &header, sizeof header);
  }
  ProxyStepRecord* step(uint32_t unit) {
    auto* record = reinterpret_cast<ProxyStepRecord*>(bytes + size_t{unit} * kUnitBytes);
    record->head.start = 1000;
    record->head.kind = Kind::kProxyStep;
    return record;
  }
};

TEST(Seal, CoversWhatIsThereAndNotWhatComesLater) {
  Chunk chunk;
  ProxyStepRecord* step = chunk.step(kChunkHeaderUnits);
  step->step = 7;
  const ChunkSeal before = make_seal(chunk.bytes);
  EXPECT_EQ(before.units, kChunkHeaderUnits + 3);
  // Waits, the stop and their companions are late; polls are counted without a time.
  step->wait1_after = 5;
  step->bytes = 4096;
  step->head.stop_after = 9;
  step->head.flags |= kFlagStopped;
  ChunkSeal after = make_seal(chunk.bytes);
  EXPECT_EQ(after.entries, before.entries);
  EXPECT_NE(after.late, before.late);
  const uint32_t late = after.late;
  step->restarts = 3;
  EXPECT_EQ(make_seal(chunk.bytes).late, late);
  step->step = 8;
  after = make_seal(chunk.bytes);
  EXPECT_NE(after.entries, before.entries);
  EXPECT_NE(after.blocks[0], before.blocks[0]);
  EXPECT_EQ(after.blocks[1], before.blocks[1]);
}

TEST(Seal, TellsWhenTheLastLateFieldWasFilledIn) {
  Chunk chunk;
  ProxyStepRecord* step = chunk.step(kChunkHeaderUnits);
  const auto* bytes = reinterpret_cast<const unsigned char*>(step);
  EXPECT_EQ(latest_late_ticks(bytes), 0u);
  step->wait2_after = 50;
  step->wait1_after = 20;
  EXPECT_EQ(latest_late_ticks(bytes), 1050u);
  step->head.stop_after = kSaturated;
  EXPECT_EQ(latest_late_ticks(bytes), UINT64_MAX);
}

TEST(Seal, LossesOfALogAreLive) {
  Chunk chunk;
  auto* header = reinterpret_cast<ChunkHeader*>(chunk.bytes);
  header->purpose = Purpose::kDefs;
  auto* log = reinterpret_cast<LogDef*>(chunk.bytes + sizeof(ChunkHeader));
  log->head = {10, 1, static_cast<uint16_t>(Def::kLog), sizeof(LogDef) / kUnitBytes};
  const ChunkSeal before = make_seal(chunk.bytes);
  log->losses[3] = 17;
  EXPECT_EQ(make_seal(chunk.bytes).entries, before.entries);
  log->head.ticks = 11;
  EXPECT_NE(make_seal(chunk.bytes).entries, before.entries);
}

}  // namespace
}  // namespace lockstep::format
