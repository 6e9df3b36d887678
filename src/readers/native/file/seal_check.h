// SPDX-License-Identifier: Apache-2.0
// Checks a chunk against its seal (format/seal.h): which of its entries are what was written.
#pragma once
#include <vector>

#include "readers/native/file/file_view.h"
#include "readers/native/file/record_cursor.h"

namespace lockstep::readers::native {

// What a seal says of a chunk as it was read.
struct SealCheck {
  enum class State : uint8_t {
    kNone,  // no seal: nothing is proven
    kGood,
    kDamaged,
  } state = State::kNone;
  std::vector<UnitRange> good;                   // proven entries, ascending
  uint32_t covered = format::kChunkHeaderUnits;  // the seal says nothing of entries from here on
  uint32_t damaged_blocks = 0;
  bool is_end_good = true;        // what lies just before `covered` is proven
  bool are_late_changed = false;  // late fields are neither what was sealed nor what was filled in since
};

// Reads a chunk and checks it; false if it has been recycled since the scan, or cannot be read, which is
// counted. In a file whose writer sealed all chunks as it closed, one without a seal is damaged.
bool read_checked(const FileView& view, const Chunk& chunk, ChunkBuffer& buffer, SealCheck& check,
                  ReadLosses& losses);

}  // namespace lockstep::readers::native
