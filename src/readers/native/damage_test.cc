// SPDX-License-Identifier: Apache-2.0
// Files cut, torn, overwritten and hostile: what is whole is read, the rest is counted, nothing crashes.
#include <filesystem>
#include <random>

#include "model/record_gaps.h"
#include "readers/native/file/file_view.h"
#include "readers/native/record_census.h"
#include "readers/native/test_run.h"
#include "tests/support/sanitizers.h"

namespace lockstep::readers::native {
namespace {

// Several chunks of records in two logs.
void fill(FileBuilder& file, int operations, bool is_sealed = false) {
  if (!is_sealed) file.unsealed();
  uint32_t comm = file.comm(1, 0, 2, "w");
  FileBuilder::Log& caller = file.log(100);
  FileBuilder::Log& progress = file.log(101);
  uint16_t shape = caller.shape("AllReduce", "ncclFloat32");
  for (int i = 0; i < operations; ++i) {
    auto start = static_cast<uint64_t>(2000 + i * 1000);
    uint64_t task = caller.add(
        Kind::kColl, format::CollRecord{head(start, 10), 1, 0, 0, uint64_t(i), comm, shape, 4, 1, 0, 0});
    for (int c = 0; c < 4; ++c)
      progress.add(Kind::kKernelCh, format::KernelChRecord{head(start + 5, 9), task, 5, 6, comm, 9});
  }
}

format::ChunkHeader& chunk_header(std::vector<std::byte>& bytes, size_t chunk) {
  return *reinterpret_cast<format::ChunkHeader*>(bytes.data() + format::kHeaderBytes +
                                                 chunk * format::kChunkBytes);
}
format::FileHeader& file_header(std::vector<std::byte>& bytes) {
  return *reinterpret_cast<format::FileHeader*>(bytes.data());
}

model::Trace load_bytes(std::span<const std::byte> bytes) {
  std::string path = test_dir() + "/p.lks";
  write_bytes(path, bytes);
  return load_one(path);
}

TEST(Damage, CutAtEvery4KiBAndAtRandomBytes) {
  FileBuilder file;
  fill(file, 1500);
  std::vector<std::byte> bytes = file.bytes();
  std::string path = test_dir() + "/cut.lks";
  std::mt19937 random(7);
  std::vector<size_t> cuts;
  for (size_t cut = 4096; cut < bytes.size(); cut += 4096) cuts.push_back(cut);
  for (int i = 0; i < 60; ++i) cuts.push_back(4096 + random() % (bytes.size() - 4096));
  std::sort(cuts.begin(), cuts.end());
  uint64_t previous = 0;
  for (size_t cut : cuts) {
    write_bytes(path, std::span(bytes).first(cut));
    model::Trace trace = load_one(path);
    uint64_t read = events(trace);
    EXPECT_GE(read, previous) << cut;  // every whole record before the cut is there
    EXPECT_TRUE(trace.losses.size() > 0 || read == 1500u * 5)
        << cut;  // behind the last record nothing is lost
    previous = read;
  }
  write_bytes(path, bytes);
  model::Trace whole = load_one(path);
  EXPECT_EQ(events(whole), 1500u * 5);
  EXPECT_EQ(whole.losses.size(), 0u) << losses_text(whole);
}

TEST(Damage, ARecordThatTheFileEndsInIsNotRead) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100);
  log.add(Kind::kColl, format::CollRecord{head(1000, 5), 1, 0, 0, 0, 0, 0, 1, 1, 0, 0});
  std::vector<std::byte> bytes = file.bytes();
  // Chunk 0 holds definitions, chunk 1 records; the record begins behind the chunk header.
  size_t record = format::kHeaderBytes + format::kChunkBytes + sizeof(format::ChunkHeader);
  EXPECT_EQ(events(load_bytes(std::span(bytes).first(record + 64))), 1u);
  model::Trace cut = load_bytes(std::span(bytes).first(record + 63));
  EXPECT_EQ(events(cut), 0u);
  EXPECT_EQ(loss(cut, "cut_record"), 1u);
}

TEST(Damage, AFileThatEndsInsideAChunksHeaderLacksWhatWasInIt) {
  FileBuilder file;
  file.log(100).add(Kind::kColl, format::CollRecord{head(1000, 5), 1, 0, 0, 0, 0, 0, 1, 1, 0, 0});
  const std::vector<std::byte> bytes = file.bytes();
  for (const size_t kept : {1u, 8u, 40u, 63u}) {
    const model::Trace cut =
        load_bytes(std::span(bytes).first(format::kHeaderBytes + format::kChunkBytes + kept));
    EXPECT_EQ(events(cut), 0u);
    EXPECT_GT(loss(cut, "incomplete_end"), 0u) << kept << ": " << losses_text(cut);
  }
}

// Storage gives nothing back behind the first chunks, before or after the chunks were found.
TEST(Damage, ChunksThatStorageDoesNotGiveBackAreCounted) {
  constexpr uint32_t kKept = 4;
  FileBuilder builder;
  fill(builder, 1500);
  const std::string path = test_dir() + "/p.lks";
  for (const bool is_late : {false, true}) {
    builder.write(path);
    auto view = FileView::open(path);
    ASSERT_TRUE(view) << view.error().message();
    const auto lose = [&] { std::filesystem::resize_file(path, format::chunk_offset(kKept)); };
    ReadLosses losses;
    if (!is_late) lose();
    view->scan(losses);
    const uint32_t chunks = view->header().chunks_claimed;
    ASSERT_GT(chunks, kKept);
    if (is_late) lose();
    const RecordCensus census = take_census(*view, losses);
    EXPECT_EQ(losses.count(kLossUnread), chunks - kKept);
    count_gaps(*view, census, true, losses);
    EXPECT_EQ(losses.count(model::kLossIncompleteEnd), chunks - kKept) << is_late;
  }
}

TEST(Damage, AFileWithoutChunksIsAnEmptyProcess) {
  FileBuilder file;
  std::vector<std::byte> bytes = file.bytes();
  model::Trace trace = load_bytes(bytes);
  EXPECT_EQ(trace.processes.size(), 1u);
  EXPECT_EQ(events(trace), 0u);
  EXPECT_EQ(trace.processes.first_ns[0], 0);
  file_header(bytes).chunks_claimed = 1000;  // more than the file holds
  trace = load_bytes(bytes);
  EXPECT_EQ(loss(trace, "cut_file"), 1000u);
}

TEST(Damage, ACommunicatorLargerThanAnyJobHasNoSize) {
  FileBuilder file;
  file.comm(1, 0, INT32_MAX, "w");
  const model::Trace trace = load_one(file);
  ASSERT_EQ(trace.comms.size(), 1u);
  EXPECT_EQ(trace.comms.ranks[0], -1);
  EXPECT_EQ(loss(trace, "bad_value"), 1u);
}

TEST(Damage, TornChunkHeadersAndDuplicates) {
  FileBuilder file;
  fill(file, 1500);
  std::vector<std::byte> bytes = file.bytes();
  model::Trace whole = load_bytes(bytes);
  size_t chunks = (bytes.size() - format::kHeaderBytes) / format::kChunkBytes;
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    std::vector<std::byte> torn = bytes;
    chunk_header(torn, chunk).magic = 0;  // never published
    EXPECT_EQ(loss(load_bytes(torn), "unpublished_chunk"), 1u);
    chunk_header(torn, chunk).magic = 0x12345678;
    EXPECT_EQ(loss(load_bytes(torn), "bad_chunk"), 1u);
    chunk_header(torn, chunk).magic = format::kChunkMagic;
    chunk_header(torn, chunk).log = 60000;
    EXPECT_EQ(loss(load_bytes(torn), "bad_chunk"), 1u);
    chunk_header(torn, chunk).log = chunk_header(bytes, chunk).log;
    chunk_header(torn, chunk).next = static_cast<uint32_t>(chunk);  // a cycle: not followed
    EXPECT_EQ(events(load_bytes(torn)), events(whole));
    chunk_header(torn, chunk).chunk_no = 4'000'000'000;
    load_bytes(torn);
  }
  // Two chunks of one log with one number: the second one's records are counted, not mixed in.
  std::vector<size_t> of_progress;
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const auto& header = chunk_header(bytes, chunk);
    if (header.log == 2 && header.purpose == format::Purpose::kRecords) of_progress.push_back(chunk);
  }
  ASSERT_GT(of_progress.size(), 3u);
  uint64_t inside = chunk_header(bytes, of_progress[2]).records;
  chunk_header(bytes, of_progress[2]).chunk_no = 1;
  model::Trace trace = load_bytes(bytes);
  EXPECT_EQ(loss(trace, "duplicate_chunk"), 1u);
  EXPECT_EQ(loss(trace, "duplicate_record"), inside);
  EXPECT_EQ(loss(trace, "missing_chunk"), 1u);
  EXPECT_EQ(events(trace) + inside, events(whole));
}

TEST(Damage, BehindDamageTheWalkGoesOn) {
  FileBuilder file;
  fill(file, 1500);
  std::vector<std::byte> bytes = file.bytes();
  model::Trace whole = load_bytes(bytes);
  size_t chunk = 0;
  while (chunk_header(bytes, chunk).records == 0) ++chunk;  // a full one
  std::byte* units = bytes.data() + format::kHeaderBytes + chunk * format::kChunkBytes;
  uint32_t records = chunk_header(bytes, chunk).records;
  reinterpret_cast<format::RecordHead*>(units + sizeof(format::ChunkHeader))->kind = static_cast<Kind>(200);
  model::Trace trace = load_bytes(bytes);
  EXPECT_EQ(loss(trace, "unknown_record"), 1u);
  EXPECT_EQ(loss(trace, "incomplete_slightly"), 1u);
  EXPECT_EQ(events(trace) + 1, events(whole));
  // A zeroed tag inside a full chunk.
  std::memset(units + sizeof(format::ChunkHeader), 0, format::kUnitBytes);
  trace = load_bytes(bytes);
  EXPECT_EQ(loss(trace, "missing_record"), 1u);
  EXPECT_EQ(events(trace) + 1, events(whole));
  // All of it: the chunk knew how many it held.
  std::memset(units + sizeof(format::ChunkHeader), 0, format::kChunkBytes - sizeof(format::ChunkHeader));
  trace = load_bytes(bytes);
  EXPECT_EQ(loss(trace, "missing_record"), records);
  EXPECT_EQ(events(trace) + records, events(whole));
}

// Ends of the record: cut, damaged in the middle, its newest chunk zeroed.
TEST(Damage, WhatIsMissingAtTheEndIsToldFromWhatIsMissingBefore) {
  FileBuilder file;
  fill(file, 1500);
  const std::vector<std::byte> good = file.bytes();
  model::Trace cut = load_bytes(std::span(good).first(good.size() / 2));
  EXPECT_GT(loss(cut, "incomplete_end"), 0u);
  EXPECT_EQ(loss(cut, "unproven_rest"), 0u);
  std::vector<std::byte> bytes = good;
  size_t chunk = 0;
  while (chunk_header(bytes, chunk).records == 0) ++chunk;  // a full one
  chunk_header(bytes, chunk).magic = 7;
  model::Trace middle = load_bytes(bytes);
  EXPECT_EQ(loss(middle, "incomplete_middle"), 1u) << losses_text(middle);
  EXPECT_EQ(loss(middle, "incomplete_end"), 0u);
  EXPECT_EQ(loss(middle, "unproven_rest"), 1u);
  // The newest chunk of a log is gone without a trace but for the count of used chunks.
  bytes = good;
  std::memset(bytes.data() + bytes.size() - format::kChunkBytes, 0, format::kChunkBytes);
  model::Trace last = load_bytes(bytes);
  EXPECT_EQ(loss(last, "empty_chunk"), 1u) << losses_text(last);
  EXPECT_EQ(loss(last, "incomplete_end"), 1u);
}

// The writer ended between two looks at a chunk: the file has a copy of before it was full, and what follows.
TEST(Damage, AChunkThatWasNotFullYetLacksItsEnd) {
  for (const bool is_sealed : {true, false}) {
    FileBuilder early, file;
    fill(early, 200, is_sealed);
    fill(file, 1500, is_sealed);
    std::vector<std::byte> bytes = file.bytes();
    const std::vector<std::byte> before = early.bytes();
    uint32_t chunk = 0;
    while (chunk_header(bytes, chunk).records == 0) ++chunk;  // a full one
    const auto at = static_cast<ptrdiff_t>(format::chunk_offset(chunk));
    std::copy_n(before.begin() + at, format::kChunkBytes, bytes.begin() + at);
    ASSERT_EQ(chunk_header(bytes, chunk).purpose, format::Purpose::kRecords);
    ASSERT_EQ(chunk_header(bytes, chunk).chunk_no, 0u);
    EXPECT_EQ(chunk_header(bytes, chunk).next, 0u);
    const model::Trace trace = load_bytes(bytes);
    EXPECT_EQ(loss(trace, "missing_record"), 1u) << is_sealed << losses_text(trace);
    EXPECT_EQ(loss(trace, "incomplete_middle"), 1u) << is_sealed << losses_text(trace);
    EXPECT_EQ(loss(trace, "incomplete_end"), 0u) << is_sealed;
  }
}

// No time lies outside of the file's life, whatever bytes say.
TEST(Damage, ImpossibleTimesAreDamage) {
  FileBuilder file;
  fill(file, 1500);
  file.header().heartbeat_ticks = 10'000'000'000;
  file.header().heartbeat_monotonic_ns = 10'000'000'000;
  file.header().heartbeat_realtime_ns = FileBuilder::kEpochNs + 10'000'000'000;
  std::vector<std::byte> bytes = file.bytes();
  model::Trace whole = load_bytes(bytes);
  EXPECT_EQ(whole.losses.size(), 0u) << losses_text(whole);
  size_t chunk = 0;
  while (chunk_header(bytes, chunk).records == 0) ++chunk;
  auto* first = reinterpret_cast<format::RecordHead*>(
      bytes.data() + format::kHeaderBytes + chunk * format::kChunkBytes + sizeof(format::ChunkHeader));
  first->start = uint64_t{1} << 60;
  model::Trace trace = load_bytes(bytes);
  EXPECT_EQ(loss(trace, "bad_record"), 1u);
  EXPECT_EQ(events(trace) + 1, events(whole));
  EXPECT_EQ(trace.processes.last_ns[0], whole.processes.last_ns[0]);
  // A heartbeat that contradicts two other clocks is worked out from them.
  file_header(bytes).heartbeat_ticks = uint64_t{1} << 61;
  trace = load_bytes(bytes);
  EXPECT_EQ(loss(trace, "bad_record"), 1u);
  EXPECT_EQ(trace.processes.heartbeat_ns[0], at(10'000'000'000));
}

TEST(Damage, RingRetention) {
  FileBuilder file;
  file.ring(3);
  fill(file, 3000);
  model::Trace trace = load_one(file);
  EXPECT_GT(loss(trace, "overwritten"), 0u);
  EXPECT_GT(loss(trace, "overwritten_chunk"), 0u);
  EXPECT_EQ(events(trace) + loss(trace, "overwritten"), 3000u * 5);
  // Channels outlive their operation in another log by a little, or not: both must be reported.
  uint64_t orphans = 0;
  for (uint32_t task : trace.channels.all(&model::ChannelTable::task)) orphans += task == model::kNoRow;
  EXPECT_EQ(loss(trace, "overwritten_parent"), orphans);
  EXPECT_LT(orphans, trace.channels.size());
}

// Nothing in a ring's file says by itself that a place was used: statistics that are gone, a newest chunk
// that nobody points at.
TEST(Damage, AWholeRingSaysHowManyChunksItHolds) {
  FileBuilder file;
  file.ring(3);
  fill(file, 3000);
  std::vector<std::byte> bytes = file.bytes();
  const size_t chunks = (bytes.size() - format::kHeaderBytes) / format::kChunkBytes;
  size_t used = 0;
  for (size_t chunk = 0; chunk < chunks; ++chunk)
    used += chunk_header(bytes, chunk).magic == format::kChunkMagic;
  file_header(bytes).chunks_kept = static_cast<uint32_t>(used);
  EXPECT_EQ(loss(load_bytes(bytes), "empty_chunk"), 0u);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    if (chunk_header(bytes, chunk).magic != format::kChunkMagic) continue;
    std::vector<std::byte> zeroed = bytes;
    std::fill_n(zeroed.begin() + static_cast<ptrdiff_t>(format::kHeaderBytes + chunk * format::kChunkBytes),
                format::kChunkBytes, std::byte{0});
    EXPECT_EQ(loss(load_bytes(zeroed), "empty_chunk"), 1u) << chunk;
  }
  file_header(bytes).segment[0] = 'l';
  file_header(bytes).chunks_kept = static_cast<uint32_t>(used) + 1;
  const model::Trace elsewhere = load_bytes(bytes);
  EXPECT_EQ(loss(elsewhere, "empty_chunk"), 0u) << "it is not whole yet";
  EXPECT_EQ(loss(elsewhere, "incomplete_end"), 1u) << "what it holds now is on another host";
}

TEST(Damage, RandomBytesNeverCrash) {
  FileBuilder file;
  fill(file, 600);
  const std::vector<std::byte> good = file.bytes();
  std::string path = test_dir() + "/noise.lks";
  std::mt19937 random(11);
  for (int round = 0; round < 150; ++round) {
    std::vector<std::byte> bytes = good;
    int edits = 1 << (round % 12);
    for (int i = 0; i < edits; ++i) {
      // Half of the edits go to chunk headers and first records, where they hurt most.
      size_t chunk = random() % ((bytes.size() - format::kHeaderBytes) / format::kChunkBytes);
      size_t at = i % 2 ? format::kHeaderBytes + chunk * format::kChunkBytes + random() % 256
                        : random() % bytes.size();
      bytes[at] = static_cast<std::byte>(random());
    }
    write_bytes(path, bytes);
    auto source = open({path});
    if (!source) continue;  // the header was hit
    model::Trace trace;
    (void)(*source)->load(0, trace);
  }
}

TEST(Damage, ASparseFileOfManyTerabytesIsReadAtOnce) {
  FileBuilder file;
  fill(file, 10);
  std::string path = test_dir() + "/sparse.lks";
  file.write(path);
  std::error_code error;
  std::filesystem::resize_file(path, uint64_t{1} << 43, error);
  if (error) GTEST_SKIP() << "no such large files here";
  EXPECT_EQ(events(load_one(path)), 50u);
}

TEST(Damage, AMillionCommunicators) {
  if (test::kSanitized) GTEST_SKIP() << "of one thread, and long";
  FileBuilder file;
  for (uint32_t i = 0; i < 1'000'000; ++i) file.comm(i + 1, 0, 2);
  FileBuilder::Log& log = file.log(100);
  log.add(Kind::kGroup, format::GroupRecord{head(1000, 5), 999'999, 0, 0});
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.comms.size(), 1'000'000u);
  EXPECT_EQ(trace.comms.comm_id[trace.calls.comm[0]], 1'000'000u);
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

// Each piece in turn would keep all prefixes of both.
TEST(Damage, TextsThatGrowByTurnsAreKeptOnce) {
  FileBuilder file;
  const uint32_t comms[] = {file.comm(1, 0, 2), file.comm(2, 0, 2)};
  format::GroupRanksDef ranks{};
  ranks.n = 62;
  format::NoteDef note{};
  std::strncpy(note.key, format::kNoteOtherNccl, sizeof note.key - 1);
  std::strncpy(note.value, "- 0 /a/libnccl.so.2", sizeof note.value - 1);
  for (int i = 0; i < 400; ++i) {
    file.define(format::Def::kGroupRanks, comms[i % 2], ranks);
    file.define(format::Def::kNote, 0, note);
  }
  const model::Trace trace = load_one(file);
  size_t bytes = 0;
  for (model::StringId id = 0; id < trace.strings.size(); ++id) bytes += trace.strings[id].size();
  EXPECT_LT(bytes, 100'000u);
  EXPECT_EQ(trace.strings[trace.comms.members[1]].size(), 2 * 62 * 200 - 1u);
}

// A rate that no clock has is no bound of times.
TEST(Damage, AForgedTickRateExcludesNothing) {
  FileBuilder file;
  file.header().host_clock = format::HostClock::kTsc;
  file.header().tick_hz = UINT64_MAX;
  file.unsealed();
  file.log(100).add(Kind::kGroup, format::GroupRecord{head(5000, 5), format::kNoComm, 0, 0});
  EXPECT_EQ(load_one(file).calls.size(), 1u);
}

TEST(Damage, HostileCommNumbers) {
  FileBuilder file;
  format::CommDef def{};
  file.define(format::Def::kComm, 0xfffffff0, def);
  file.define(format::Def::kComm, 5, def);
  file.define(format::Def::kComm, 5, def);
  file.define(format::Def::kCommEnd, 77, format::CommEndDef{});
  format::GroupRanksDef ranks{};
  ranks.n = 0xffffffff;  // more than the entry holds
  file.define(format::Def::kGroupRanks, 5, ranks);
  file.define(static_cast<format::Def>(999), 0, format::NoteDef{});  // of a newer minor version
  model::Trace trace = load_one(file);
  EXPECT_EQ(trace.comms.size(), 3u);
  EXPECT_EQ(loss(trace, "bad_comm_number"), 2u);
  EXPECT_EQ(loss(trace, "unknown_comm_definition"), 1u);
}

}  // namespace
}  // namespace lockstep::readers::native
