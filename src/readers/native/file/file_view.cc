// SPDX-License-Identifier: Apache-2.0
// Decides what of a file may be trusted, before anything is decoded. A header that contradicts its checksum
// or names sizes that no version wrote is refused as a whole: nothing behind it could be placed. Everything
// else is taken chunk by chunk, and what is missing is counted against what the header says was handed out. A
// stream that was used must be whole; a ring keeps spare chunks and gives some back, so there only
// `chunks_kept` of a finished file says how many there were.
#include "readers/native/file/file_view.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>

#include "base/utf8.h"
#include "format/seal.h"

namespace lockstep::readers::native {
namespace {

using format::ChunkHeader;
using format::FileHeader;

Error bad(const std::string& path, std::string text) {
  return {ErrorCode::kInvalidInput, std::move(text), path};
}

// The seal apart: it may be made while a chunk is given back.
bool all_zero(const ChunkHeader& header) {
  static constexpr ChunkHeader kZero{};
  return std::memcmp(&header, &kZero, offsetof(ChunkHeader, seal)) == 0;
}

auto order(const Chunk& c) { return std::make_tuple(c.purpose, c.log, c.chunk_no, c.index); }

}  // namespace

Result<FileView> FileView::open(const std::string& path) {
  LOCKSTEP_ASSIGN(ProcessBytes file, ProcessBytes::open(path));
  FileHeader header{};
  size_t got = file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  // From the outside in: what the file is, whether all of the header is there, whether this version knows it,
  // and only then what it says.
  if (got == 0) return bad(path, "the file is empty");
  if (got < sizeof header.magic || std::memcmp(header.magic, format::kMagic, sizeof header.magic) != 0) {
    return bad(path, "not a Lockstep process file (it does not begin with the .lks magic)");
  }
  if (got < sizeof header)
    return bad(path, "the file is cut inside its header, after " + std::to_string(got) + " bytes");
  if (header.major > format::kMajor) {
    return Error{ErrorCode::kUnsupported,
                 "written in format " + std::to_string(header.major) +
                     " by a newer Lockstep; this one reads up to " + std::to_string(format::kMajor) +
                     ": update Lockstep",
                 path};
  }
  if (header.state == static_cast<uint32_t>(format::FileState::kBuilding)) {
    return bad(path, "its header was never finished: the process ended while capture was starting");
  }
  if (header.major == 0 || header.header_bytes != format::kHeaderBytes ||
      header.chunk_bytes != format::kChunkBytes || header.unit_bytes != format::kUnitBytes) {
    return bad(path, "the header is damaged (sizes that no version wrote)");
  }
  if (header.seal != 0 && header.seal != format::seal_of_header(header))
    return bad(path, "the header is damaged (its checksum does not match)");
  return FileView(std::move(file), header);
}

void FileView::scan(ReadLosses& losses) {
  uint64_t size = file_.size();
  uint64_t in_file = size <= format::kHeaderBytes
                         ? 0
                         : (size - format::kHeaderBytes + format::kChunkBytes - 1) / format::kChunkBytes;
  // The header says how much was handed out, so a file that is cut shows it, even in the middle of a chunk
  // that looks whole.
  if (header_.chunks_claimed > in_file) {
    cut_ = header_.chunks_claimed - static_cast<uint32_t>(in_file);
    losses.add("cut_file", header_.chunks_claimed - in_file, [&] {
      return "chunks missing: the file ends at byte " + std::to_string(size) + ", capture had used " +
             std::to_string(header_.chunks_claimed) + " chunks: " + path();
    });
  }
  uint32_t end = static_cast<uint32_t>(std::min<uint64_t>(in_file, UINT32_MAX));
  uint32_t seen = 0, seen_all = 0;  // of those that were used, and of all
  for (uint32_t index = 0; index < end; ++index) {
    ChunkHeader header{};
    size_t got = file_.read_at(format::chunk_offset(index), std::as_writable_bytes(std::span(&header, 1)));
    if (got == 0) {  // though the file goes on
      seen += is_used(index);
      ++seen_all;
      ++unread_;
      note_unread(index, losses);
    } else if (all_zero(header)) {
      // Unused chunks of a prepared file are often a hole, and a hostile one may span exabytes.
      uint64_t next = file_.next_data(format::chunk_offset(index) + sizeof header);
      if (next > format::chunk_offset(index) + format::kChunkBytes) {
        uint64_t skip_to = (next - format::kHeaderBytes) / format::kChunkBytes;
        index = static_cast<uint32_t>(std::min<uint64_t>(skip_to, end) - 1);
      }
    } else {
      seen += is_used(index);
      ++seen_all;
      add_chunk(index, header, losses);
    }
  }
  // With no chunk at all, `there - 1` wraps to an index that is not below chunks_claimed.
  const uint32_t there = std::min(header_.chunks_claimed, end);
  if (is_used(there - 1) && seen < there) {
    bad_ += there - seen;
    losses.add("empty_chunk", there - seen,
               [&] { return "chunks that capture had used but that hold nothing: " + path(); });
  }
  // Of a ring no place says by itself that it was used.
  const uint64_t found = uint64_t{seen_all} + cut_;
  if (header_.segment[0] == 0 && header_.retention == format::Retention::kRing &&
      found < header_.chunks_kept) {
    const uint64_t missing = header_.chunks_kept - found;
    bad_ += static_cast<uint32_t>(missing);
    losses.add("empty_chunk", missing,
               [&] { return "chunks of the ring that hold nothing any more: " + path(); });
  }
  used_ = std::max(used_, header_.chunks_claimed);
  std::sort(chunks_.begin(), chunks_.end(),
            [](const Chunk& a, const Chunk& b) { return order(a) < order(b); });
  auto same = [](const Chunk& a, const Chunk& b) {
    return a.purpose == b.purpose && a.log == b.log && a.chunk_no == b.chunk_no;
  };
  std::vector<Chunk> unique;
  unique.reserve(chunks_.size());
  for (const Chunk& chunk : chunks_) {
    // Of several with one number the first in the file is taken; which is right, nothing shows.
    (!unique.empty() && same(unique.back(), chunk) ? duplicates_ : unique).push_back(chunk);
  }
  chunks_ = std::move(unique);
}

// In a ring a seal may be of what the chunk held before.
bool FileView::has_seal(const ChunkHeader& header) const {
  if (!has_seals() || header.seal.units == 0) return false;
  return header_.retention != format::Retention::kRing ||
         (header.seal.chunk_no == header.chunk_no && header.seal.header == format::seal_of_header(header));
}

// In a stream a chunk has one content for life, so any other number or sum is damage.
bool FileView::contradicts_seal(const ChunkHeader& header) const {
  return format::has_seal(header.purpose) && has_seal(header) &&
         (header.seal.chunk_no != header.chunk_no || header.seal.header != format::seal_of_header(header));
}

// Capture had handed it out by the last heartbeat, so that its header was there. A ring keeps spare chunks
// and takes some back; where space ends, some stay unused.
bool FileView::is_used(uint32_t index) const {
  return index < header_.chunks_claimed && header_.retention == format::Retention::kStream &&
         (header_.state == static_cast<uint32_t>(format::FileState::kOpen) ||
          header_.state == static_cast<uint32_t>(format::FileState::kClosed));
}

void FileView::add_chunk(uint32_t index, const ChunkHeader& header, ReadLosses& losses) {
  Chunk chunk{index, header.chunk_no, header.tid, header.records, header.next, header.log, header.purpose};
  used_ = std::max(used_, index + 1);
  if (header.magic == 0) {  // claimed, or being recycled, when the process ended: nothing in it was published
    bad_ += is_used(index);
    losses.add("unpublished_chunk", 1,
               [&] { return "chunks that were being set up, first " + where(chunk, 0); });
    return;
  }
  // Whatever passes here is used as an index or a key: a log is at most kMaxLogs, and meta chunks alone have
  // log 0.
  bool meta = header.purpose == format::Purpose::kMeta;
  bool known = header.purpose >= format::Purpose::kMeta && header.purpose <= format::Purpose::kHistogram;
  if (header.magic != format::kChunkMagic || !known || contradicts_seal(header) ||
      meta != (header.log == 0) || header.log > format::kMaxLogs) {
    ++bad_;
    losses.add("bad_chunk", 1, [&] { return "chunks with a damaged header, first " + where(chunk, 0); });
    return;
  }
  chunks_.push_back(chunk);
}

// The chunks are sorted by purpose, log and number, so each list is one piece of them.
std::span<const Chunk> FileView::chunks(format::Purpose purpose, uint16_t log) const {
  auto key = [](const Chunk& c) { return std::make_pair(c.purpose, c.log); };
  auto low = std::lower_bound(chunks_.begin(), chunks_.end(), std::make_pair(purpose, log),
                              [&](const Chunk& c, const auto& wanted) { return key(c) < wanted; });
  auto high = std::upper_bound(low, chunks_.end(), std::make_pair(purpose, log),
                               [&](const auto& wanted, const Chunk& c) { return wanted < key(c); });
  return {low, high};
}

std::vector<uint16_t> FileView::logs() const {
  std::vector<uint16_t> logs;
  for (const Chunk& chunk : chunks_) {
    if (chunk.log != 0 && (logs.empty() || logs.back() != chunk.log)) logs.push_back(chunk.log);
  }
  std::sort(logs.begin(), logs.end());
  logs.erase(std::unique(logs.begin(), logs.end()), logs.end());
  return logs;
}

void read_chunk(const ProcessBytes& file, uint32_t index, format::Purpose purpose, uint32_t unit,
                ChunkBuffer& buffer) {
  const size_t from = size_t{unit} * format::kUnitBytes;
  const auto read = [&](ChunkBuffer& to) {
    bool is_live = false;
    to.valid = static_cast<uint32_t>(
        from + file.read_at(format::entry_offset(index, unit), std::span(to.bytes).subspan(from), &is_live));
    std::memset(to.bytes.data(), 0, from);
    std::memset(to.bytes.data() + to.valid, 0, format::kChunkBytes - to.valid);
    return is_live;
  };
  // Live bytes are copied twice: in one copy nobody knows whether a tag was read before or after the fields
  // that it publishes. Statistics have no tags.
  if (!read(buffer) || !format::has_seal(purpose)) return;
  auto again = std::make_unique<ChunkBuffer>();
  read(*again);
  format::join_copies(reinterpret_cast<unsigned char*>(buffer.bytes.data()),
                      reinterpret_cast<const unsigned char*>(again->bytes.data()),
                      again->valid / format::kUnitBytes, purpose, std::max(unit, format::kChunkHeaderUnits));
}

bool FileView::read(const Chunk& chunk, ChunkBuffer& buffer) const {
  read_chunk(file_, chunk.index, chunk.purpose, 0, buffer);
  ChunkHeader header{};
  std::memcpy(&header, buffer.bytes.data(), sizeof header);
  // After the bytes, not before: a chunk whose number is still the same then was not recycled while it was
  // copied.
  if (capturing() &&
      header_.retention == format::Retention::kRing) {  // the owner may have recycled it meanwhile
    file_.read_at(format::chunk_offset(chunk.index), std::as_writable_bytes(std::span(&header, 1)));
  }
  return header.magic == format::kChunkMagic && header.chunk_no == chunk.chunk_no &&
         header.log == chunk.log && header.purpose == chunk.purpose;
}

void FileView::note_unread(uint32_t index, ReadLosses& losses) const {
  losses.add(kLossUnread, 1, [&] {
    return "chunks that storage does not return, first " + path() + ":" +
           std::to_string(format::chunk_offset(index));
  });
}

std::string FileView::where(const Chunk& chunk, uint32_t unit) const {
  return path() + ":" +
         std::to_string(format::chunk_offset(chunk.index) + uint64_t{unit} * format::kUnitBytes);
}

std::string field_text(std::span<const char> field) {
  auto end = std::find(field.begin(), field.end(), '\0');
  return valid_utf8({field.data(), static_cast<size_t>(end - field.begin())});
}

}  // namespace lockstep::readers::native
