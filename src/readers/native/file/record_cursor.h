// SPDX-License-Identifier: Apache-2.0
// Walks the records of one chunk in order, and stops at the first unwritten tag, at the end of the range, or
// at damage.
#pragma once
#include <cstdint>

#include "format/walk.h"
#include "readers/native/file/file_view.h"

namespace lockstep::readers::native {

// Units of a chunk, from one record's begin to behind another's end.
struct UnitRange {
  uint32_t begin = format::kChunkHeaderUnits, end = format::kLastUnit;
};

class RecordCursor : public format::Walk<format::RecordHead> {
 public:
  // `buffer` outlives the cursor.
  explicit RecordCursor(const ChunkBuffer& buffer, UnitRange range = {})
      : Walk(buffer.bytes.data(), buffer.valid / format::kUnitBytes, range.begin, range.end) {}

  // Why the walk stopped before the chunk's end, as a loss kind; nullptr: nothing wrong.
  const char* problem() const {
    switch (stop()) {
      case format::WalkStop::kUnknown:
        return "unknown_record";
      case format::WalkStop::kTooLong:
        return "bad_record";
      case format::WalkStop::kCut:
        return "cut_record";
      default:
        return nullptr;
    }
  }
};

}  // namespace lockstep::readers::native
