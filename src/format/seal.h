// SPDX-License-Identifier: Apache-2.0
// Checksums of what a file holds (since minor 4). A chunk's seal covers the entries that were published when
// it was made, from the chunk's begin on: it stays right while more entries follow and while late fields are
// filled in, as those have a checksum of their own. One checksum for each 4 KiB says what of a damaged chunk
// is still good.
//
// It is made by whoever writes chunks without haste (capture's writer thread, an adopter or a tool), in a
// copy of the chunk that then goes into the file, and belongs to the chunk number that it names: in a ring a
// place may hold another chunk by then. One that was half written does not fit and counts as damage. What is
// late: format/late_fields.def. No library is needed.
//
// What a seal proves is damage, not forgery: whoever can write the file can make a seal. Everything here
// reads a copy of kChunkBytes bytes and any content; nothing allocates or fails.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "format/crc32c.h"
#include "format/walk.h"

namespace lockstep::format {

// Units of the blocks that are summed up each for itself, and the longest record in words of 8 bytes.
inline constexpr uint32_t kSealBlockUnits = kUnitsPerChunk / kSealBlocks;
inline constexpr uint32_t kMostRecordWords = 10;

namespace seal_detail {

// By byte of a record: what is fixed once it is published, and what is late. Loose bytes are in no sum, as
// nothing shows when they were filled in.
struct Masks {
  uint64_t fixed[kMostRecordWords], late[kMostRecordWords];
};
// Takes bytes out of the fixed part; `is_late` puts them into the late one. `offset` and `size` are bytes of
// the record.
constexpr void leave(Masks& masks, bool is_late, size_t offset, size_t size) {
  for (size_t byte = offset; byte < offset + size; ++byte) {
    const uint64_t mask = uint64_t{0xff} << byte % 8 * 8;
    masks.fixed[byte / 8] &= ~mask;
    if (is_late) masks.late[byte / 8] |= mask;
  }
}
// Of one kind. Flags of an ApiOp are loose: kFlagGpuTimes comes without a time. Kinds that are no events
// never change once they are published.
constexpr Masks masks_of(Kind wanted) {
  Masks masks{};
  for (uint64_t& word : masks.fixed) word = UINT64_MAX;
  const auto kind = static_cast<uint8_t>(wanted);
  if (record_bytes(kind) == 0 || !is_event(kind)) return masks;
  leave(masks, true, offsetof(RecordHead, stop_after), sizeof RecordHead::stop_after);
  leave(masks, wanted != Kind::kApiOp, offsetof(RecordHead, flags), 1);
#define FIELD(is_late, name, field) \
  if (wanted == Kind::k##name)      \
    leave(masks, is_late, offsetof(name##Record, field), sizeof name##Record::field);
#define LATE_TIME(name, field) FIELD(true, name, field)
#define LATE(name, field) FIELD(true, name, field)
#define LOOSE(name, field) FIELD(false, name, field)
#include "format/late_fields.def"
#undef LOOSE
#undef LATE
#undef LATE_TIME
#undef FIELD
  return masks;
}
struct AllMasks {
  Masks of[32];
};
constexpr AllMasks all_masks() {
  AllMasks all{};
  for (uint8_t kind = 0; kind < 32; ++kind) all.of[kind] = masks_of(static_cast<Kind>(kind));
  return all;
}
// Made by the compiler, as capture seals in the job. A handle's kind has 5 bits, so there are 32.
inline constexpr AllMasks kMasks = all_masks();

}  // namespace seal_detail

// The latest time in late fields of a record, in ticks; kSaturated in one of them: UINT64_MAX. 0 none.
// `record` is whole. If it lies before FileHeader::sealed_ticks, late fields that do not fit their sum are
// damaged.
inline uint64_t latest_late_ticks(const unsigned char* record) {
  RecordHead head;
  std::memcpy(&head, record, sizeof head);
  uint32_t latest = is_event(static_cast<uint8_t>(head.kind)) ? head.stop_after : 0;
#define LATE_TIME(name, field)                                                 \
  if (head.kind == Kind::k##name) {                                            \
    uint32_t after = 0;                                                        \
    std::memcpy(&after, record + offsetof(name##Record, field), sizeof after); \
    latest = after > latest ? after : latest;                                  \
  }
#define LATE(name, field)
#define LOOSE(name, field)
#include "format/late_fields.def"
#undef LOOSE
#undef LATE
#undef LATE_TIME
  return latest == kSaturated ? UINT64_MAX : latest == 0 ? 0 : head.start + latest;
}

// Sums up entries: the fixed part of all and of each block, and the late fields. An entry that crosses into
// the next block counts for the one that it begins in. One thread. Entries come in ascending order, and each
// lies inside the chunk with its whole size: who calls has checked that.
class SealSums {
 public:
  explicit SealSums(Purpose purpose) : purpose_(purpose) {
    for (uint32_t& block : blocks_) block = Crc32c::kBegin;
  }
  // The entry of `units` units that begins at `unit`.
  void add(const unsigned char* chunk, uint32_t unit, uint32_t units) {
    const unsigned char* at = chunk + size_t{unit} * kUnitBytes;
    uint32_t& block = blocks_[unit / kSealBlockUnits];
    if (purpose_ == Purpose::kRecords)
      add_record(at, units * 2, block);
    else
      add_definition(at, units * 2, block);
  }
  uint32_t all() const { return ~all_; }
  uint32_t late() const { return ~late_; }
  uint16_t block(uint32_t i) const { return static_cast<uint16_t>(~blocks_[i]); }

 private:
  void add_record(const unsigned char* at, uint32_t words, uint32_t& block) {
    const seal_detail::Masks& masks = seal_detail::kMasks.of[at[offsetof(RecordHead, kind)] & 31];
    Crc32c::MaskedSums sums{all_, block, late_};
    crc_.add_masked(sums, at, masks.fixed, masks.late, words);
    all_ = sums.first;
    block = sums.second;
    late_ = sums.other;
  }
  void add_definition(const unsigned char* at, uint32_t words, uint32_t& block) {
    const bool has_losses = is_live(at);  // which are counted on and on
    uint64_t piece[kMostRecordWords];
    for (uint32_t done = 0; done < words && (done == 0 || !has_losses); done += kMostRecordWords) {
      const uint32_t size = words - done < kMostRecordWords ? words - done : kMostRecordWords;
      std::memcpy(piece, at + size_t{done} * 8, size_t{size} * 8);
      if (has_losses) std::memset(piece + 2, 0, sizeof piece - 16);
      all_ = crc_.add(all_, piece, size);
      block = crc_.add(block, piece, size);
    }
  }
  static bool is_live(const unsigned char* at) {
    DefHead head;
    std::memcpy(&head, at, sizeof head);
    return head.kind == static_cast<uint16_t>(Def::kLog);
  }

  Crc32c crc_;
  Purpose purpose_;
  uint32_t all_ = Crc32c::kBegin, late_ = Crc32c::kBegin, blocks_[kSealBlocks];
};

// Of what a chunk's header says of it, `next` and `records` apart, which come later. The lower
// half of the sum, as the seal has 16 bits for it.
inline uint16_t seal_of_header(const ChunkHeader& header) {
  const uint64_t words[3] = {uint64_t{static_cast<uint8_t>(header.purpose)} | uint64_t{header.log} << 16 |
                                 uint64_t{header.chunk_no} << 32,
                             header.claimed_ticks, header.tid};
  return static_cast<uint16_t>(~Crc32c().add(Crc32c::kBegin, words, 3));
}

// The seal of a copy of a chunk as it is. `chunk` has kChunkBytes bytes that nobody writes to meanwhile. It
// covers the entries up to the first that is not published, or whose size cannot be.
inline ChunkSeal make_seal(const unsigned char* chunk) {
  ChunkHeader header;
  std::memcpy(&header, chunk, sizeof header);
  SealSums sums(header.purpose);
  uint32_t unit = kChunkHeaderUnits;
  for (uint32_t units = 0; unit < kLastUnit; unit += units) {
    units = entry_units(chunk, header.purpose, unit);
    if (units == 0) break;
    sums.add(chunk, unit, units);
  }
  ChunkSeal seal{};
  seal.chunk_no = header.chunk_no;
  seal.units = static_cast<uint16_t>(unit);
  seal.header = seal_of_header(header);
  seal.entries = sums.all();
  seal.late = sums.late();
  for (uint32_t i = 0; i < kSealBlocks; ++i) seal.blocks[i] = sums.block(i);
  return seal;
}
// Statistics have none: their cells change in place all the time.
inline bool has_seal(Purpose purpose) {
  return purpose == Purpose::kMeta || purpose == Purpose::kDefs || purpose == Purpose::kRecords;
}

// Of what is written once in the header, without what a library says of itself later (GPU clock, NCCL's
// version, mask). Never 0, which stands for no seal.
inline uint32_t seal_of_header(const FileHeader& header) {
  FileHeader once = header;
  once.gpu_clock = GpuClock::kUnknown;
  once.nccl_version = once.event_mask = 0;
  constexpr size_t kWords = offsetof(FileHeader, state) / 8;
  uint64_t words[kWords];
  std::memcpy(words, &once, sizeof words);
  const uint32_t crc = ~Crc32c().add(Crc32c::kBegin, words, kWords);
  return crc == 0 ? 1 : crc;
}

}  // namespace lockstep::format
