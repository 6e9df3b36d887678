// SPDX-License-Identifier: Apache-2.0
// Puts what a segment holds into the process file, behind the threads that write it (docs/decisions/0015).
//
// The writer thread calls `write`, which may wait as long as storage likes; at exit, whoever closes may call
// it where there is no such thread. One caller at a time. `trouble` is for threads that find no place.
#pragma once
#include <atomic>
#include <cstdint>

#include "capture/core/file/process_file.h"
#include "capture/core/losses.h"

namespace lockstep::capture {

class FileWriter {
 public:
  enum class Depth : uint8_t {
    kHeader,
    kPast,  // what no thread changes any more; its places are given back
    kNew,   // and what was not in the file yet or still grows
    kAll,   // and what can still be filled in
    kLast,  // the same, and the header of a closed file: the process ends
  };
  // False if something could not be written, which is tried again by the next call.
  bool write(ProcessFile& file, Depth depth);
  // Nobody will write what is missing: counts its records, and says so in the file's header.
  void give_up(ProcessFile& file);
  // Copies what a tool asks for from the file's header to the segment's. True if it is a new request.
  bool fetch_request(ProcessFile& file);
  // Why nothing is written at present; false if nothing stands in the way.
  bool trouble(Loss* why) const;

 private:
  struct Newest {  // number of the newest chunk of each list of a log
    uint32_t defs, records;
  };
  // What the writer knows of a place, by its index in the segment.
  struct Place {
    uint64_t sum;      // of what the file has
    uint32_t entry;    // whose sum it is: the table's
    uint16_t entries;  // that the file has of it
    bool is_open;      // it named no successor when it was copied: its end may be missing
  };
  struct Chunk {
    uint32_t entry, place;
  };
  enum class State : uint8_t { kUnpublished, kGrows, kFull, kPast };
  bool prepare(const ProcessFile& file);
  uint32_t collect(const ProcessFile& file);
  State state_of(const ProcessFile& file, uint32_t place) const;
  enum class Put : uint8_t { kDone, kNothing, kFailed };  // kNothing: nothing is published there
  Put put(ProcessFile& file, const Chunk& chunk, bool is_past);
  Put add_to_batch(ProcessFile& file, const Chunk& chunk);
  bool write_batch(ProcessFile& file);
  bool copy(const ProcessFile& file, uint32_t place, unsigned char* to);
  bool clear(ProcessFile& file, uint32_t place);
  bool write_place(ProcessFile& file, uint32_t place);
  bool write_stream(ProcessFile& file, Depth depth);
  bool write_ring(ProcessFile& file);
  bool write_at(ProcessFile& file, const void* bytes, size_t size, uint64_t offset);
  uint32_t chunks_in_file() const {
    return end_ == 0 ? 0 : static_cast<uint32_t>((end_ - format::kHeaderBytes) / format::kChunkBytes);
  }
  bool write_header(ProcessFile& file, Depth depth, uint64_t began);
  void note_error(ProcessFile& file, int error);
  void note_time(int64_t ns, size_t bytes);
  void note_success(ProcessFile& file);

  Newest newest_[format::kMaxLogs + 1] = {};
  Place* places_ = nullptr;
  Chunk* chunks_ = nullptr;  // in use, by ascending number
  uint32_t whole_ = 0;       // the file has every chunk below
  uint32_t kept_ = 0;        // chunks that it holds
  uint64_t sealed_ticks_ = 0;
  uint64_t end_ = 0;  // of the file, as written
  bool has_claims_ = false;
  uint64_t header_sum_ = 0;
  std::atomic<int64_t> since_ns_{0};  // of the write that goes on; 0 none
  std::atomic<int64_t> chunk_ns_{0};  // that a write lately took for each chunk
  bool has_written_ = false;          // since write() was called
  std::atomic<uint32_t> trouble_{0};  // 1 + a Loss
  format::FileHeader header_ = {};    // as it goes into the file
  // Chunks with numbers in a row that are finally as they are here go into the file together.
  static constexpr uint32_t kBatch = 8;
  Chunk batch_[kBatch] = {};
  uint32_t batched_ = 0;
  uint32_t unwritten_ = UINT32_MAX;  // number of the first chunk of a batch that could not be written; none
  alignas(64) unsigned char images_[kBatch][format::kChunkBytes] = {};
};

}  // namespace lockstep::capture
