// SPDX-License-Identifier: Apache-2.0
// One process file (format/file_layout.h) as a reader sees it: a validated header and the chunks that it
// holds. Everything in the file is hostile: sizes, numbers and links are checked, chunk chains are not
// followed (a cyclic or broken `next` cannot matter), and what does not fit is a loss. The file may be
// growing while it is read, or be cut at any byte: reads go through ProcessBytes, never through a mapping.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/file_layout.h"
#include "readers/native/file/process_bytes.h"
#include "readers/native/file/read_losses.h"

namespace lockstep::readers::native {

// Chunks that are in the file and cannot be read: an error of the disk, or of the network before it.
inline constexpr std::string_view kLossUnread = "unread_chunk";

// A chunk with a valid header. Its entries have not been checked.
struct Chunk {
  uint32_t index;  // in the file
  uint32_t chunk_no;
  uint32_t tid;
  uint32_t entries;  // as its writer counted them when it was full; 0 unknown
  uint32_t next;     // index of the chunk that follows it in its list; 0 none yet
  uint16_t log;
  format::Purpose purpose;
};

// A copy of one chunk. 32 KiB: on the heap, and used again for the next chunk.
struct ChunkBuffer {
  alignas(64) std::array<std::byte, format::kChunkBytes> bytes;  // zero behind `valid`
  uint32_t valid = 0;
};

// The chunk from `unit` on, where an entry begins or the chunk does; zero before. Of one that grows meanwhile
// it has whole entries alone, each as it was when its tag was read, or newer in fields that come late.
void read_chunk(const ProcessBytes& file, uint32_t index, format::Purpose purpose, uint32_t unit,
                ChunkBuffer& buffer);

// For one thread; several views of one file may be open. After scan() the list of chunks does not change,
// though the file may grow.
class FileView {
 public:
  // Reads and checks the header. The error says in one sentence why this is no readable process file.
  static Result<FileView> open(const std::string& path);

  const format::FileHeader& header() const { return header_; }
  const ProcessBytes& file() const { return file_; }
  const std::string& path() const { return file_.path(); }
  // Its writer makes seals (format/seal.h), and made one of every chunk as it closed.
  bool has_seals() const { return header_.seal != 0; }
  bool sealed_at_close() const {
    return has_seals() && header_.state == static_cast<uint32_t>(format::FileState::kClosed) &&
           header_.sealed_ticks >= header_.heartbeat_ticks;
  }
  // The chunk's seal is there and of what it holds now.
  bool has_seal(const format::ChunkHeader& header) const;
  bool capturing() const { return header_.state == static_cast<uint32_t>(format::FileState::kOpen); }

  // Finds the chunks; once, before the calls below.
  void scan(ReadLosses& losses);
  // Chunks of one log and purpose, by ascending chunk number, without duplicates. Meta is log 0.
  std::span<const Chunk> chunks(format::Purpose purpose, uint16_t log) const;
  // Logs that have chunks of any purpose, ascending.
  std::vector<uint16_t> logs() const;
  // Chunks that carry a number already seen, of which nothing is read.
  const std::vector<Chunk>& duplicates() const { return duplicates_; }

  // Chunks that were used for something and of which nothing can be read: cut off, not given back, or their
  // header is damaged.
  uint32_t unreadable_chunks() const { return cut_ + bad_ + unread_; }
  uint32_t unread_chunks() const { return unread_; }
  bool is_cut() const { return cut_ != 0; }
  // A ring of which the file has what was saved last, and the rest is in memory that is not to be seen from
  // here.
  bool is_unsaved() const {
    return header_.segment[0] != 0 && header_.retention == format::Retention::kRing && !file_.has_segment();
  }
  // Chunks that were used, as far as that is known.
  uint32_t used_chunks() const { return used_; }

  // Fills the buffer; false if the chunk has been recycled since the scan.
  bool read(const Chunk& chunk, ChunkBuffer& buffer) const;
  // Counts a chunk that is in the file and that storage does not give back.
  void note_unread(uint32_t index, ReadLosses& losses) const;
  // "file:offset", for messages.
  std::string where(const Chunk& chunk, uint32_t unit) const;

 private:
  FileView(ProcessBytes file, const format::FileHeader& header) : file_(std::move(file)), header_(header) {}
  bool is_used(uint32_t index) const;
  bool contradicts_seal(const format::ChunkHeader& header) const;
  void add_chunk(uint32_t index, const format::ChunkHeader& header, ReadLosses& losses);

  ProcessBytes file_;
  format::FileHeader header_;
  std::vector<Chunk> chunks_;  // by purpose, log, chunk_no
  std::vector<Chunk> duplicates_;
  uint32_t cut_ = 0, bad_ = 0, unread_ = 0, used_ = 0;
};

// A text field up to its NUL, as valid UTF-8.
std::string field_text(std::span<const char> field);

}  // namespace lockstep::readers::native
