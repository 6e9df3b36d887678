// SPDX-License-Identifier: Apache-2.0
// The first pass over a file's records: how many there are of each kind, and how far each chunk is filled. It makes
// exact reservations possible, and freezes what is read of a file that still grows: definitions are read after it, so
// they cover every record counted here. All damage to record chunks is counted here, once.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "readers/native/file_view.h"

namespace lockstep::readers::native {

struct RecordChunk {
  Chunk chunk;
  uint32_t end_unit = 0;
  uint32_t records = 0;
};
struct LogCensus {
  uint16_t log = 0;
  std::vector<RecordChunk> chunks;
};
struct RecordCensus {
  std::array<uint64_t, 32> by_kind{};  // format::Kind
  std::vector<LogCensus> logs;
};

RecordCensus take_census(const FileView& view, ReadLosses& losses);

}  // namespace lockstep::readers::native
