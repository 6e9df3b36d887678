// SPDX-License-Identifier: Apache-2.0
// Sums over one process file of this process while it is written: a small reader that follows the chunks in
// use, from call to call, and reads only what is new, and of much that is new a part with each call. In ring
// retention, where records are overwritten, it adds up the histograms instead.
//
// libc only, as all that runs in the user's process. The file is trusted as far as its sizes: an entry that
// does not fit ends its chunk. One thread at a time.
#pragma once
#include <cstdint>

#include "format/counted.h"
#include "format/walk.h"

namespace lockstep::capture::scorep {

// Sums over files: operations and their bytes, operations under way and the age of the oldest in ns, events
// dropped, all losses, and bytes of the files in use.
struct Totals {
  uint64_t operations = 0, bytes = 0, open = 0, oldest_open_ns = 0, dropped = 0, losses = 0, recorded = 0;
};

class FileCounters {
 public:
  // Takes the descriptor. False if the file is none of this process that is still written.
  bool open(int file);
  void close();
  // Adds what the file has by now.
  void add(Totals& totals, int64_t now_monotonic_ns);

 private:
  // A chunk that is followed: what lies before `unit` has been read.
  struct Chunk {
    uint32_t index, chunk_no, unit;
    uint16_t log;
    format::Purpose purpose;
  };
  // What records of a log need to be counted, and where the log counts its losses.
  struct Log {
    uint64_t losses_offset;  // in the file; 0 unknown
    uint8_t* element_bytes;  // by number of the shape; 0 unknown
    uint32_t shapes_size;
  };
  // An event that was read before it had ended; `start` is in ticks of the file.
  struct Open {
    uint64_t handle, offset, start;
  };
  struct Stop {
    uint64_t handle, ticks;
  };
  // `offset` is one of the file, whether the bytes are still in the segment or not. False, or fewer, where
  // they are not there.
  bool read(uint64_t offset, void* out, size_t size) const;
  size_t read_some(uint64_t offset, void* out, size_t size) const;
  void open_segment();
  void read_table();
  void find_chunks(uint32_t claimed);
  bool add_chunk(uint32_t index);
  void follow_chunks(format::Purpose purpose, uint32_t most);
  bool read_chunk(Chunk& chunk);
  template <class Head>
  format::WalkStop walk(Chunk& chunk, uint32_t valid_units);
  void visit(const Chunk& chunk, const format::Walk<format::DefHead>& entry);
  void visit(const Chunk& chunk, const format::Walk<format::RecordHead>& entry);
  void add_shape(Log& log, const format::ShapeDef& def);
  uint64_t bytes_of(uint16_t log, uint16_t shape, uint64_t count) const;
  void hold_open(const Chunk& chunk, const format::RecordHead& head);
  void stop(uint64_t handle, uint64_t ticks);
  void close_ended();
  void add_histograms(Totals& totals);
  void add_losses(const uint64_t (&losses)[format::kLossKinds], Totals& totals) const;
  int64_t monotonic_of(uint64_t ticks) const;

  static constexpr uint32_t kMostOpen = 512, kMostStops = 512;
  // A chunk of the segment: its number in the file, and where it lies.
  struct Place {
    uint32_t number, place;
  };
  int file_ = -1;
  int segment_ = -1;  // what is not in the file yet
  uint32_t segment_places_ = 0;
  uint32_t* table_ = nullptr;
  Place* places_ = nullptr;  // in use, by number
  uint32_t places_size_ = 0;
  format::FileHeader header_{};
  uint32_t seen_ = 0;  // chunks below were looked at
  Chunk* chunks_ = nullptr;
  uint32_t chunks_size_ = 0, chunks_room_ = 0;
  uint32_t* unpublished_ = nullptr;
  uint32_t unpublished_size_ = 0, unpublished_room_ = 0;
  Log logs_[format::kMaxLogs + 1] = {};
  format::Counted<uint64_t> counted_;
  Open open_[kMostOpen] = {};
  uint32_t open_size_ = 0;
  // The last that were read before their events, which another log has.
  Stop stops_[kMostStops] = {};
  uint32_t next_stop_ = 0;
  uint64_t forgotten_ticks_ = 0;  // the newest of those that were pushed out
  unsigned char buffer_[format::kChunkBytes], again_[format::kChunkBytes];
};

}  // namespace lockstep::capture::scorep
