// SPDX-License-Identifier: Apache-2.0
#include "readers/native/record_census.h"

#include <memory>

#include "readers/native/record_cursor.h"

namespace lockstep::readers::native {
namespace {

using format::Purpose;

// Chunk numbers that are not in the file: recycled by ring retention, or gone.
void count_missing(const FileView& view, std::span<const Chunk> chunks, ReadLosses& losses) {
  if (chunks.empty()) return;
  uint64_t missing = uint64_t{chunks.back().chunk_no} + 1 - chunks.size();
  bool ring = view.header().retention == format::Retention::kRing;
  losses.add(ring ? "overwritten_chunk" : "missing_chunk", missing, [&] {
    return (ring ? "chunks of 32 KiB that ring retention has recycled (their records: see "
                   "capture/overwritten): "
                 : "chunks of 32 KiB that should be in the file and are not, records unknown: ") +
           view.path();
  });
}

void count_duplicates(const FileView& view, ChunkBuffer& buffer, ReadLosses& losses) {
  for (const Chunk& chunk : view.duplicates()) {
    uint64_t records = 0;
    if (chunk.purpose == Purpose::kRecords && view.read(chunk, buffer)) {
      for (RecordCursor cursor(buffer); cursor.next();) ++records;
    }
    losses.add("duplicate_chunk", 1,
               [&] { return "chunks with a number already seen, first " + view.where(chunk, 0); });
    losses.add("duplicate_record", records,
               [&] { return "records in such chunks, first " + view.where(chunk, 0); });
  }
}

RecordChunk walk(const FileView& view, const Chunk& chunk, const ChunkBuffer& buffer, RecordCensus& census,
                 ReadLosses& losses) {
  RecordChunk found{.chunk = chunk};
  RecordCursor cursor(buffer);
  while (cursor.next()) {
    ++census.by_kind[static_cast<uint8_t>(cursor.head().kind)];
    ++found.records;
  }
  found.end_unit = cursor.unit();
  uint64_t rest = chunk.entries > found.records ? chunk.entries - found.records : 0;
  if (cursor.problem() != nullptr) {
    losses.add(cursor.problem(), std::max<uint64_t>(rest, 1), [&] {
      return "records (or rests of chunks of unknown content) that cannot be read, first " +
             view.where(chunk, cursor.unit());
    });
  } else {
    losses.add("missing_record", rest, [&] {
      return "records that their chunk once held and that are gone, first " +
             view.where(chunk, cursor.unit());
    });
  }
  return found;
}

}  // namespace

RecordCensus take_census(const FileView& view, ReadLosses& losses) {
  RecordCensus census;
  auto buffer = std::make_unique<ChunkBuffer>();
  count_duplicates(view, *buffer, losses);
  for (uint16_t log : view.logs()) {
    std::span<const Chunk> chunks = view.chunks(Purpose::kRecords, log);
    count_missing(view, chunks, losses);
    LogCensus& entry = census.logs.emplace_back(LogCensus{.log = log, .chunks = {}});
    entry.chunks.reserve(chunks.size());
    for (const Chunk& chunk : chunks) {
      if (!view.read(chunk, *buffer))
        continue;  // recycled just now: its number is missing, the new one comes later
      entry.chunks.push_back(walk(view, chunk, *buffer, census, losses));
    }
  }
  return census;
}

}  // namespace lockstep::readers::native
