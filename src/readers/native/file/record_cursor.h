// SPDX-License-Identifier: Apache-2.0
// Walks the records of one chunk in order, and stops at the first unwritten tag, at the end of the range, or at damage.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "format/records.h"
#include "readers/native/file/file_view.h"

namespace lockstep::readers::native {

// Units of a chunk, from one record's begin to behind another's end.
struct UnitRange {
  uint32_t begin = format::kChunkHeaderUnits, end = format::kLastUnit;
};

class RecordCursor {
 public:
  // `buffer` outlives the cursor.
  explicit RecordCursor(const ChunkBuffer& buffer, UnitRange range = {})
      : bytes_(buffer.bytes.data()),
        valid_units_(buffer.valid / format::kUnitBytes),
        end_unit_(std::min(range.end, format::kLastUnit)),
        next_unit_(std::max(range.begin, format::kChunkHeaderUnits)) {}

  // Moves to the next record; false at the end.
  bool next() {
    unit_ = next_unit_;
    if (unit_ >= end_unit_) return false;
    std::memcpy(&head_, bytes_ + size_t{unit_} * format::kUnitBytes, sizeof head_);
    auto kind = static_cast<uint8_t>(head_.kind);
    if (kind == 0) {
      if (unit_ >= valid_units_) problem_ = "cut_record";
      return false;
    }
    uint32_t size = format::record_bytes(kind);
    next_unit_ = unit_ + size / format::kUnitBytes;
    if (size == 0) {
      problem_ = "unknown_record";
    } else if (next_unit_ > format::kLastUnit) {
      problem_ = "bad_record";
    } else if (next_unit_ > valid_units_) {
      problem_ = "cut_record";
    }
    return problem_ == nullptr;
  }

  const format::RecordHead& head() const { return head_; }
  uint32_t unit() const { return unit_; }  // of the record; behind the last one after next() returned false
  // The record as its type, which is that of its kind.
  template <class Record>
  Record as() const {
    Record record;
    std::memcpy(&record, bytes_ + size_t{unit_} * format::kUnitBytes, sizeof record);
    return record;
  }
  // Why the walk stopped before the chunk's end, as a loss kind: unknown_record (its size is unknown too),
  // bad_record (reaches over the chunk's end), cut_record (the file ends inside). nullptr: nothing wrong.
  const char* problem() const { return problem_; }

 private:
  const std::byte* bytes_;
  uint32_t valid_units_, end_unit_;
  uint32_t unit_ = 0, next_unit_;
  format::RecordHead head_{};
  const char* problem_ = nullptr;
};

}  // namespace lockstep::readers::native
