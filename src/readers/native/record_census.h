// SPDX-License-Identifier: Apache-2.0
// The first pass over a file's records: how many there are of each kind, and how far each chunk is filled. It
// makes exact reservations possible, and freezes what is read of a file that still grows: definitions are
// read after it, so they cover every record counted here. All damage to record chunks is counted here, once;
// behind it the walk goes on with the next record that capture can have written.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "readers/native/file/file_view.h"
#include "readers/native/file/record_cursor.h"

namespace lockstep::readers::native {

// A chunk of records, as far as it can be read. The same chunk is read again when its records are decoded.
struct RecordChunk {
  Chunk chunk;
  std::vector<UnitRange> ranges;  // of good records, ascending
  uint32_t records = 0;
  bool is_end_known = false;  // nothing is missing behind the last of them
};
// The chunks of one log, by ascending number.
struct LogCensus {
  uint16_t log = 0;
  std::vector<RecordChunk> chunks;
};
// What take_census found in one file.
struct RecordCensus {
  std::array<uint64_t, 32> by_kind{};  // format::Kind
  std::vector<LogCensus> logs;
  bool is_unproven = false;                 // damage where no seal shows what of the rest is good
  uint64_t good_units = 0, lost_units = 0;  // of records; the latter without what is missing in whole chunks
};

// `view` has been scanned. Reads every chunk of records once; keeps ranges, not bytes.
RecordCensus take_census(const FileView& view, ReadLosses& losses);

// Whether the newest records of the process, or what its records name, may be missing, or only some before
// that: as losses of the kinds in model/record_gaps.h. After all that can find damage. `all_named`: capture
// lost no definition.
void count_gaps(const FileView& view, const RecordCensus& census, bool all_named, ReadLosses& losses);

}  // namespace lockstep::readers::native
