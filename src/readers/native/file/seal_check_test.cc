// SPDX-License-Identifier: Apache-2.0
// Files with checksums, damaged: what is proven is read, nothing that changed is, and what was filled in late
// is no damage.
#include <random>

#include "format/seal.h"
#include "readers/native/test_run.h"

namespace lockstep::readers::native {
namespace {

void fill(FileBuilder& file, int operations) {
  const uint32_t comm = file.comm(1, 0, 2, "w");
  FileBuilder::Log& log = file.log(100);
  const uint16_t shape = log.shape("AllReduce", "ncclFloat32");
  for (int i = 0; i < operations; ++i) {
    const auto start = static_cast<uint64_t>(2000 + i * 1000);
    const uint64_t call =
        log.add(Kind::kCollApi, format::CollApiRecord{head(start, 500), 64, comm, shape, 0});
    log.add_child(Kind::kColl,
                  format::CollRecord{head(start + 5, 10), 64, 0, 0, uint64_t(i), comm, shape, 4, 1, 0, 0},
                  call);
  }
  file.header().heartbeat_ticks = file.header().heartbeat_monotonic_ns = 10'000'000'000;
  file.header().heartbeat_realtime_ns = FileBuilder::kEpochNs + 10'000'000'000;
}

model::Trace load_bytes(std::span<const std::byte> bytes) {
  const std::string path = test_dir() + "/p.lks";
  write_bytes(path, bytes);
  return load_one(path);
}

size_t offset_of_chunk(size_t chunk) { return format::kHeaderBytes + chunk * format::kChunkBytes; }

// Of the first full chunk of records.
size_t full_chunk(const std::vector<std::byte>& bytes) {
  for (size_t chunk = 0;; ++chunk) {
    format::ChunkHeader header;
    std::memcpy(&header, bytes.data() + offset_of_chunk(chunk), sizeof header);
    if (header.records != 0) return offset_of_chunk(chunk);
  }
}

// Every row that is there is one of the undamaged file's: starts are unique, and what belongs to one start is
// alike.
uint64_t changed_rows(const model::Trace& trace, const model::Trace& whole) {
  uint64_t changed = 0;
  size_t at = 0;
  for (size_t i = 0; i < trace.tasks.size(); ++i) {
    while (at < whole.tasks.size() && whole.tasks.start_ns[at] < trace.tasks.start_ns[i]) ++at;
    changed += at == whole.tasks.size() || whole.tasks.start_ns[at] != trace.tasks.start_ns[i] ||
               whole.tasks.end_ns[at] != trace.tasks.end_ns[i] ||
               whole.tasks.count[at] != trace.tasks.count[i] || whole.tasks.seq[at] != trace.tasks.seq[i];
  }
  return changed;
}

TEST(SealCheck, AWholeFileIsProven) {
  FileBuilder file;
  fill(file, 3000);
  const model::Trace trace = load_one(file);
  EXPECT_EQ(events(trace), 6000u);
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

TEST(SealCheck, WhatADamagedPieceDoesNotTouchIsKept) {
  FileBuilder file;
  fill(file, 3000);
  std::vector<std::byte> bytes = file.bytes();
  const model::Trace whole = load_bytes(bytes);
  bytes[full_chunk(bytes) + 10'000] ^= std::byte{0x40};
  const model::Trace trace = load_bytes(bytes);
  EXPECT_EQ(changed_rows(trace, whole), 0u);
  const uint64_t missing = events(whole) - events(trace);
  EXPECT_GT(missing, 0u);
  EXPECT_LE(missing, 4096u / 32 + 2);  // of one block of 4 KiB
  EXPECT_EQ(loss(trace, "damaged_record"), missing) << losses_text(trace);
  EXPECT_EQ(loss(trace, "unproven_rest"), 0u);
  EXPECT_EQ(loss(trace, "incomplete_end"), 0u);
}

// Bytes anywhere but in fields that come later: no row changes, and what is missing is counted.
TEST(SealCheck, NoDamageChangesARow) {
  FileBuilder file;
  fill(file, 1500);
  const std::vector<std::byte> good = file.bytes();
  const model::Trace whole = load_bytes(good);
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> bytes = good;
    const size_t at = format::kHeaderBytes + random() % (bytes.size() - format::kHeaderBytes - 32);
    for (size_t i = at; i < at + 1 + random() % 32; ++i) bytes[i] = static_cast<std::byte>(random());
    const model::Trace trace = load_bytes(bytes);
    EXPECT_TRUE(changed_rows(trace, whole) == 0 || loss(trace, "damaged_time") != 0) << round << " at " << at;
    EXPECT_TRUE(events(trace) == events(whole) || trace.losses.size() != 0) << round << " at " << at;
  }
}

TEST(SealCheck, ADamagedTimeIsToldFromOneThatCameLater) {
  FileBuilder file;
  fill(file, 1500);
  const std::vector<std::byte> good = file.bytes();
  const size_t record = full_chunk(good) + sizeof(format::ChunkHeader);
  std::vector<std::byte> bytes = good;
  const uint32_t other = 77;
  std::memcpy(bytes.data() + record + offsetof(format::RecordHead, stop_after), &other, sizeof other);
  const model::Trace damaged = load_bytes(bytes);
  EXPECT_EQ(loss(damaged, "damaged_time"), 1u) << losses_text(damaged);
  EXPECT_EQ(loss(damaged, "unproven_rest"), 1u);
  // After the last seals were made: 1 s before the heartbeat.
  file.sealed_at(9'000'000'000);
  bytes = file.bytes();
  const uint32_t saturated = format::kSaturated;
  std::memcpy(bytes.data() + record + offsetof(format::RecordHead, stop_after), &saturated, sizeof saturated);
  EXPECT_EQ(loss(load_bytes(bytes), "damaged_time"), 0u);
}

TEST(SealCheck, RecordsBehindTheSealAreReadAsFarAsTheyArePlausible) {
  FileBuilder file;
  fill(file, 1500);
  std::vector<std::byte> bytes = file.bytes();
  const size_t chunk = full_chunk(bytes);
  auto* header = reinterpret_cast<format::ChunkHeader*>(bytes.data() + chunk);
  // As a keeper leaves it that was killed after it had sealed a half.
  std::vector<std::byte> half(bytes.begin() + static_cast<ptrdiff_t>(chunk),
                              bytes.begin() + static_cast<ptrdiff_t>(chunk + format::kChunkBytes));
  std::memset(half.data() + 16384, 0, 16384);
  header->seal = format::make_seal(reinterpret_cast<const unsigned char*>(half.data()));
  const model::Trace trace = load_bytes(bytes);
  EXPECT_EQ(events(trace), 3000u);
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
  header->seal.units = 0;  // or while it sealed it
  EXPECT_EQ(load_bytes(bytes).losses.size(), 0u);
}

TEST(SealCheck, AClosedFileHasNoChunkWithoutASeal) {
  FileBuilder file;
  fill(file, 1500);
  file.header().state = static_cast<uint32_t>(format::FileState::kClosed);
  std::vector<std::byte> bytes = file.bytes();
  EXPECT_EQ(load_bytes(bytes).losses.size(), 0u);
  reinterpret_cast<format::ChunkHeader*>(bytes.data() + full_chunk(bytes))->seal = {};
  const model::Trace trace = load_bytes(bytes);
  EXPECT_GT(loss(trace, "damaged_record"), 0u) << losses_text(trace);
}

// Number of the oldest chunk of records; UINT32_MAX where none was recycled.
uint32_t oldest_of_ring(const std::vector<std::byte>& bytes) {
  uint32_t oldest = UINT32_MAX;
  for (size_t at = offset_of_chunk(0); at < bytes.size(); at += format::kChunkBytes) {
    const auto* header = reinterpret_cast<const format::ChunkHeader*>(bytes.data() + at);
    if (header->purpose == format::Purpose::kRecords) oldest = std::min(oldest, header->chunk_no);
  }
  return oldest == 0 ? UINT32_MAX : oldest;
}

TEST(SealCheck, TheNewestRecordsOfAClosedFileCannotVanish) {
  for (const uint32_t chunks : {0u, 3u}) {  // all kept, and a ring
    FileBuilder file;
    if (chunks != 0) file.ring(chunks);
    fill(file, 1500);
    file.header().state = static_cast<uint32_t>(format::FileState::kClosed);
    const std::vector<std::byte> good = file.bytes();
    EXPECT_EQ(loss(load_bytes(good), "incomplete_end"), 0u);
    for (size_t at = offset_of_chunk(0); at < good.size(); at += format::kChunkBytes) {
      std::vector<std::byte> bytes = good;
      const auto* header = reinterpret_cast<const format::ChunkHeader*>(bytes.data() + at);
      if (header->chunk_no == oldest_of_ring(good)) continue;  // it may have been recycled
      std::memset(bytes.data() + at, 0, format::kChunkBytes);
      const model::Trace trace = load_bytes(bytes);
      EXPECT_TRUE(loss(trace, "incomplete_end") + loss(trace, "incomplete_middle") != 0)
          << chunks << " at " << at << losses_text(trace);
    }
  }
}

TEST(SealCheck, ADamagedHeaderIsRefused) {
  FileBuilder file;
  fill(file, 10);
  const std::vector<std::byte> good = file.bytes();
  for (const size_t at : {offsetof(format::FileHeader, rank), offsetof(format::FileHeader, tick_hz),
                          offsetof(format::FileHeader, minor), offsetof(format::FileHeader, host)}) {
    std::vector<std::byte> bytes = good;
    bytes[at] ^= std::byte{1};
    const std::string path = test_dir() + "/p.lks";
    write_bytes(path, bytes);
    EXPECT_FALSE(open({path})) << at;
  }
}

}  // namespace
}  // namespace lockstep::readers::native
