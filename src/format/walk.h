// SPDX-License-Identifier: Apache-2.0
// How to go through the entries of a chunk, for all who read process files: the loader, the live tail, who
// seals, and the Score-P plugin inside the job. Nothing allocates. Every byte is hostile: an entry is looked
// at only after its size has been checked against the chunk and against what is there of it, and each step
// goes forward.
//
//   | header | entry | entry | ... | 0 (unwritten) ...... | last unit, kept free |
//
// Records and definitions begin alike: the tag word is the second of the first unit. It is stored last, so an
// entry whose kind is there is there whole, but for its late fields, and only if the file was not cut inside
// it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "format/definitions.h"
#include "format/records.h"

namespace lockstep::format {

static_assert(offsetof(DefHead, id) == offsetof(RecordHead, stop_after));

// Where an entry begins: in bytes of the file, and in units of its log. `chunk` is an index in the file,
// `chunk_no` counts within one log and purpose.
constexpr uint64_t entry_offset(uint32_t chunk, uint32_t unit) {
  return chunk_offset(chunk) + uint64_t{unit} * kUnitBytes;
}
constexpr uint64_t entry_position(uint32_t chunk_no, uint32_t unit) {
  return uint64_t{chunk_no} * kUnitsPerChunk + unit;
}

// The entry whose first unit this is, as its type. `left` bytes are there: what an older minor version did
// not write yet is 0, and what a newer one added is left out.
template <class T>
T copy_of(const void* entry, size_t left) {
  T value{};
  std::memcpy(&value, entry, sizeof value < left ? sizeof value : left);
  return value;
}

// Size in units of the entry whose first unit this is; 0 for what cannot be an entry. `entry` has kUnitBytes
// bytes; the size is the entry's own word, unchecked for definitions.
inline uint32_t units_of_head(const void* entry, Purpose purpose) {
  if (purpose == Purpose::kRecords)
    return record_bytes(static_cast<const unsigned char*>(entry)[offsetof(RecordHead, kind)]) / kUnitBytes;
  const auto head = copy_of<DefHead>(entry, sizeof(DefHead));
  return head.kind == 0 ? 0 : head.units;
}
// Of the one that begins at `unit`, below kUnitsPerChunk; 0 also at the end of what was published, and for
// one that would reach over the chunk's end. `chunk` has kChunkBytes bytes.
inline uint32_t entry_units(const void* chunk, Purpose purpose, uint32_t unit) {
  const uint32_t units =
      units_of_head(static_cast<const unsigned char*>(chunk) + size_t{unit} * kUnitBytes, purpose);
  return unit + units <= kLastUnit ? units : 0;
}

// Makes of two copies of a chunk that grows meanwhile one in which every entry is whole. A tag word holds for
// what is read after it, and of one copy nobody knows what was read first: so the tag words are those of
// `tags`, which was made first, and all else is of `rest`, which was read behind a fence. Both have
// kChunkBytes bytes, those of `rest` end at `rest_units`. From `unit` on, where an entry begins, `tags`
// becomes the result, with zeros behind what was published.
inline void join_copies(unsigned char* tags, const unsigned char* rest, uint32_t rest_units, Purpose purpose,
                        uint32_t unit) {
  constexpr size_t kTag = offsetof(RecordHead, stop_after), kBehind = kTag + sizeof(uint64_t);
  uint32_t units = 0;
  for (; unit < kLastUnit; unit += units) {
    units = entry_units(tags, purpose, unit);
    if (units == 0 || unit + units > rest_units) break;
    const size_t at = size_t{unit} * kUnitBytes, bytes = size_t{units} * kUnitBytes;
    std::memcpy(tags + at, rest + at, kTag);
    std::memcpy(tags + at + kBehind, rest + at + kBehind, bytes - kBehind);
  }
  if (units == 0) ++unit;  // whoever walks sees why that ends here
  std::memset(tags + size_t{unit} * kUnitBytes, 0, size_t{kUnitsPerChunk - unit} * kUnitBytes);
}

// What records and definitions share, by their head: the kind, which is 0 until the entry is published,
// and the size in units, which is 0 for a record of unknown kind.
inline uint32_t kind_of(const RecordHead& head) { return static_cast<uint8_t>(head.kind); }
inline uint32_t kind_of(const DefHead& head) { return head.kind; }
inline uint32_t units_of(const RecordHead& head) {
  return record_bytes(static_cast<uint8_t>(head.kind)) / kUnitBytes;
}
inline uint32_t units_of(const DefHead& head) { return head.units; }

// Why a walk stands still.
enum class WalkStop : uint8_t {
  kNone,       // it does not, or stands at the end of its range
  kUnwritten,  // nothing was published here yet
  kUnknown,    // of unknown size, so that nothing behind it is known either
  kTooLong,    // reaches over the chunk's end
  kCut,        // the bytes end inside
};

// Goes through the entries of one chunk, from unit `begin` to before unit `end`. `Head` is RecordHead or
// DefHead.
template <class Head>
class Walk {
 public:
  // `chunk` outlives the walk and has kChunkBytes bytes, of which the first `valid_units` units are there,
  // the rest 0.
  Walk(const void* chunk, uint32_t valid_units, uint32_t begin = kChunkHeaderUnits, uint32_t end = kLastUnit)
      : bytes_(static_cast<const unsigned char*>(chunk)),
        valid_units_(valid_units),
        end_(end < kLastUnit ? end : kLastUnit),
        next_(begin > kChunkHeaderUnits ? begin : kChunkHeaderUnits) {}

  // Moves to the next entry; false at the end of the range or where the walk stops, which stop() explains.
  // Then it is over; another walk goes on from unit() once more has been read into the chunk.
  bool next() {
    unit_ = next_;
    if (unit_ >= end_) return false;
    std::memcpy(&head_, at(), sizeof head_);
    if (kind_of(head_) == 0) {
      stop_ = unit_ >= valid_units_ ? WalkStop::kCut : WalkStop::kUnwritten;
      return false;
    }
    const uint32_t units = units_of(head_);
    next_ = unit_ + units;
    if (units == 0)
      stop_ = WalkStop::kUnknown;
    else if (next_ > kLastUnit)
      stop_ = WalkStop::kTooLong;
    else if (next_ > valid_units_)
      stop_ = WalkStop::kCut;
    return stop_ == WalkStop::kNone;
  }

  // Of the entry, once next() has returned true.
  const Head& head() const { return head_; }
  const unsigned char* at() const { return bytes_ + size_t{unit_} * kUnitBytes; }
  uint32_t unit() const { return unit_; }  // of the entry; behind the last one after next() returned false
  uint32_t units() const { return next_ - unit_; }
  WalkStop stop() const { return stop_; }
  // The entry as its type, which is that of its kind.
  template <class T>
  T as() const {
    if constexpr (std::is_same_v<Head, RecordHead>) {
      T value;
      std::memcpy(&value, at(), sizeof value);
      return value;
    } else {
      return copy_of<T>(at(), size_t{units()} * kUnitBytes);
    }
  }

 private:
  const unsigned char* bytes_;
  uint32_t valid_units_, end_;
  uint32_t unit_ = 0, next_;
  Head head_{};
  WalkStop stop_ = WalkStop::kNone;
};

}  // namespace lockstep::format
