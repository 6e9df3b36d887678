// SPDX-License-Identifier: Apache-2.0
#include "format/walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "format/counted.h"

namespace lockstep::format {
namespace {

struct Bytes {
  std::vector<unsigned char> chunk = std::vector<unsigned char>(kChunkBytes);
  uint32_t unit = kChunkHeaderUnits;

  template <class Entry>
  void add(const Entry& entry, uint32_t units) {
    std::memcpy(chunk.data() + size_t{unit} * kUnitBytes, &entry, sizeof entry);
    unit += units;
  }
  void add_link(uint64_t child) {
    LinkRecord record{};
    record.head.kind = Kind::kLink;
    record.child = child;
    add(record, sizeof record / kUnitBytes);
  }
};

std::vector<uint64_t> children(Walk<RecordHead>& walk) {
  std::vector<uint64_t> found;
  while (walk.next()) found.push_back(walk.as<LinkRecord>().child);
  return found;
}

TEST(Walk, GoesThroughRecordsUpToWhatIsNotWritten) {
  Bytes bytes;
  for (uint64_t child : {7, 8, 9}) bytes.add_link(child);
  Walk<RecordHead> walk(bytes.chunk.data(), kUnitsPerChunk);
  EXPECT_EQ(children(walk), (std::vector<uint64_t>{7, 8, 9}));
  EXPECT_EQ(walk.stop(), WalkStop::kUnwritten);
  EXPECT_EQ(walk.unit(), bytes.unit);
  Walk<RecordHead> part(bytes.chunk.data(), kUnitsPerChunk, kChunkHeaderUnits, kChunkHeaderUnits + 1);
  EXPECT_EQ(children(part), (std::vector<uint64_t>{7}));
  EXPECT_EQ(part.stop(), WalkStop::kNone) << "the range ends";
}

TEST(Walk, SaysWhyItStops) {
  Bytes bytes;
  bytes.add_link(7);
  bytes.add_link(8);
  Walk<RecordHead> cut(bytes.chunk.data(), bytes.unit - 1);
  EXPECT_EQ(children(cut), (std::vector<uint64_t>{7}));
  EXPECT_EQ(cut.stop(), WalkStop::kCut);
  Walk<RecordHead> short_file(bytes.chunk.data(), bytes.unit);
  EXPECT_EQ(children(short_file), (std::vector<uint64_t>{7, 8}));
  EXPECT_EQ(short_file.stop(), WalkStop::kCut) << "nobody knows what came behind";
  RecordHead unknown{};
  unknown.kind = static_cast<Kind>(255);
  bytes.add(unknown, 1);
  Walk<RecordHead> walk(bytes.chunk.data(), kUnitsPerChunk);
  EXPECT_EQ(children(walk).size(), 2u);
  EXPECT_EQ(walk.stop(), WalkStop::kUnknown);
}

TEST(Walk, ReadsNothingBehindTheChunk) {
  Bytes bytes;
  bytes.unit = kLastUnit - 1;
  ApiOpRecord record{};
  record.head.kind = Kind::kApiOp;
  std::memcpy(bytes.chunk.data() + size_t{bytes.unit} * kUnitBytes, &record.head, sizeof record.head);
  Walk<RecordHead> records(bytes.chunk.data(), kUnitsPerChunk, bytes.unit);
  EXPECT_FALSE(records.next());
  EXPECT_EQ(records.stop(), WalkStop::kTooLong);
  Bytes definitions;
  definitions.add(DefHead{1, 2, static_cast<uint16_t>(Def::kShape), 0xffff}, 1);
  Walk<DefHead> walk(definitions.chunk.data(), kUnitsPerChunk);
  EXPECT_FALSE(walk.next());
  EXPECT_EQ(walk.stop(), WalkStop::kTooLong);
  Bytes endless;
  endless.add(DefHead{1, 2, static_cast<uint16_t>(Def::kShape), 0}, 1);
  Walk<DefHead> still(endless.chunk.data(), kUnitsPerChunk);
  EXPECT_FALSE(still.next());
  EXPECT_EQ(still.stop(), WalkStop::kUnknown);
}

TEST(Walk, FillsUpAnOlderDefinitionWithZeros) {
  Bytes bytes;
  NoteDef note{};
  note.head = {1, 2, static_cast<uint16_t>(Def::kNote), 2};
  std::memset(note.key, 'k', sizeof note.key);
  std::memset(note.value, 'v', sizeof note.value);
  std::memcpy(bytes.chunk.data() + sizeof(ChunkHeader), &note, sizeof note);
  Walk<DefHead> walk(bytes.chunk.data(), kUnitsPerChunk);
  ASSERT_TRUE(walk.next());
  const auto read = walk.as<NoteDef>();
  EXPECT_EQ(read.key[0], 'k');
  EXPECT_EQ(read.value[sizeof read.value - 1], 0) << "behind the two units that it has";
}

TEST(Walk, OfTwoCopiesTagsAreThoseOfTheFirstAndAllElseOfTheSecond) {
  KernelChRecord record{};
  record.head = {100, 0, Kind::kKernelCh, 0, 3};
  Bytes first, second;
  first.add(record, sizeof record / kUnitBytes);
  record.parent = 5;  // not there yet when the first copy came by, though the tag behind it was
  record.gpu_stop = 9;
  record.head.stop_after = 8;
  record.head.flags = kFlagStopped;
  second.add(record, sizeof record / kUnitBytes);
  second.add_link(7);  // published since: who reads next time finds it
  join_copies(first.chunk.data(), second.chunk.data(), kUnitsPerChunk, Purpose::kRecords, kChunkHeaderUnits);
  Walk<RecordHead> walk(first.chunk.data(), kUnitsPerChunk);
  ASSERT_TRUE(walk.next());
  EXPECT_EQ(walk.as<KernelChRecord>().parent, 5u);
  EXPECT_EQ(walk.as<KernelChRecord>().gpu_stop, 9u);
  EXPECT_EQ(walk.head().stop_after, 0u) << "a stop that is newer than the first copy";
  EXPECT_EQ(walk.head().flags, 0u);
  EXPECT_FALSE(walk.next());
  EXPECT_EQ(walk.stop(), WalkStop::kUnwritten);
}

TEST(Walk, OfTwoCopiesNothingIsLeftBehindWhatWasPublished) {
  Bytes first, second;
  for (Bytes* bytes : {&first, &second}) {
    bytes->add_link(7);
    bytes->add_link(8);
    std::memset(bytes->chunk.data() + size_t{bytes->unit + 1} * kUnitBytes, 0xee, kUnitBytes);
  }
  join_copies(first.chunk.data(), second.chunk.data(), second.unit - 1, Purpose::kRecords, kChunkHeaderUnits);
  Walk<RecordHead> walk(first.chunk.data(), kUnitsPerChunk);
  EXPECT_EQ(children(walk), (std::vector<uint64_t>{7})) << "the second copy ends inside the other entry";
  EXPECT_TRUE(std::all_of(first.chunk.begin() + walk.unit() * kUnitBytes, first.chunk.end(),
                          [](unsigned char byte) { return byte == 0; }));
}

TEST(Counted, OneOperationIsACallATaskOrBothAndNoSumFalls) {
  Counted<uint64_t> counted;
  counted.add_call(100);
  EXPECT_EQ(counted.operations(), 1u);
  counted.add_task(100);
  EXPECT_EQ(counted.operations(), 1u);
  EXPECT_EQ(counted.bytes(), 100u);
  counted.add_task(1);
  counted.add_task(1);
  EXPECT_EQ(counted.operations(), 3u);
  EXPECT_EQ(counted.bytes(), 102u);
  counted.add_call(500);
  EXPECT_EQ(counted.bytes(), 600u) << "there are more tasks, and bytes were known already";
}

}  // namespace
}  // namespace lockstep::format
