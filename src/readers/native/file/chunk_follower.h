// SPDX-License-Identifier: Apache-2.0
// Follows one list of chunks (a log's records or definitions, or the meta list) of a file that still grows,
// from call to call, and reads only what is new: a call without news costs two small reads. Links and numbers
// are checked; a reader that ring retention has overtaken goes on where the list goes on, and says how much
// it has missed.
#pragma once
#include <cstdint>
#include <memory>

#include "format/walk.h"
#include "readers/native/file/file_view.h"

namespace lockstep::readers::native {

// One list of one file; one thread. It keeps no bytes between calls, only where it stands.
class ChunkFollower {
 public:
  // Starts at the beginning of this chunk.
  ChunkFollower(uint32_t index, const format::ChunkHeader& header)
      : index_(index), chunk_no_(header.chunk_no), log_(header.log), purpose_(header.purpose) {}

  // Calls `visit(entry)`, with a Walk of `Head` that stands at it, for each entry that was published since
  // the last call. At most `most_chunks` chunks are read: of more, the newest. A chunk is given up where it
  // is damaged.
  template <class Head, class Visit>
  void read_new(const ProcessBytes& file, uint32_t most_chunks, Visit&& visit) {
    skip_to_newest(file, most_chunks);
    read_on<Head>(file, most_chunks, visit);
  }

  // The same, but of more chunks the oldest: nothing is passed over that is still there. True if there may be
  // more.
  template <class Head, class Visit>
  bool read_next(const ProcessBytes& file, uint32_t most_chunks, Visit&& visit) {
    format::ChunkHeader header{};
    return rejoin(file, header) && read_on<Head>(file, most_chunks, visit);
  }
  // The chunk it stands in has been given to another list: it cannot go on.
  bool lost() const { return lost_; }
  uint32_t index() const { return index_; }
  uint32_t chunk_no() const { return chunk_no_; }
  uint16_t log() const { return log_; }
  format::Purpose purpose() const { return purpose_; }
  // Chunks that were read or begun, and those that were passed over, since the follower was made.
  uint64_t chunks_read() const { return chunks_read_; }
  uint64_t chunks_missed() const { return chunks_missed_; }

 private:
  // From where it stands. Only what lies behind `unit_` is read, so a chunk that fills slowly costs each
  // entry once. True: stopped by `most_chunks`, so more may follow.
  template <class Head, class Visit>
  bool read_on(const ProcessBytes& file, uint32_t most_chunks, Visit&& visit) {
    std::unique_ptr<ChunkBuffer> buffer;
    for (uint32_t left = most_chunks; left > 0;) {
      if (has_entry(file)) {
        if (!buffer) buffer = std::make_unique<ChunkBuffer>();
        read_chunk(file, index_, purpose_, unit_, *buffer);
        format::Walk<Head> entry(buffer->bytes.data(), buffer->valid / format::kUnitBytes, unit_);
        while (entry.next()) visit(entry);
        const bool is_damaged =
            entry.stop() == format::WalkStop::kUnknown || entry.stop() == format::WalkStop::kTooLong;
        if (!is_damaged && entry.unit() == unit_) return false;  // the file ends inside the entry
        unit_ = is_damaged ? format::kLastUnit : entry.unit();
      }
      if (!go_on(file)) return false;
      --left;
    }
    return true;
  }

  // False also if the chunk at `index` belongs to another list: a link may be damaged, a place used again.
  bool read_header(const ProcessBytes& file, uint32_t index, format::ChunkHeader& header) const;
  // To where the list stands now, if ring retention has overtaken it; its chunk's header. False: lost.
  bool rejoin(const ProcessBytes& file, format::ChunkHeader& header);
  // The list's chunk behind this one; false if there is none yet.
  bool next_of(const ProcessBytes& file, uint32_t& index, format::ChunkHeader& header) const;
  void skip_to_newest(const ProcessBytes& file, uint32_t most_chunks);
  // Whether an entry is published where it stands, by a read of 16 bytes.
  bool has_entry(const ProcessBytes& file) const;
  // Moves to the next chunk once this one is full; false if there is none.
  bool go_on(const ProcessBytes& file);
  // Stands at the first entry of another chunk from now on.
  void begin(uint32_t index, uint32_t chunk_no);

  uint32_t index_, chunk_no_;
  uint16_t log_;
  format::Purpose purpose_;
  bool lost_ = false;
  uint32_t unit_ = format::kChunkHeaderUnits;
  uint64_t chunks_read_ = 1, chunks_missed_ = 0;
};

}  // namespace lockstep::readers::native
