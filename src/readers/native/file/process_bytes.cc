// SPDX-License-Identifier: Apache-2.0
// Lays the segment over the file while the process lives or has not been adopted. The order of reading is
// what makes it right: the table first, then the file, and the table again after each read of a place. A
// chunk leaves the segment only once it is in the file, so what is not in the table any more is found there,
// and nothing is read twice or missed.
#include "readers/native/file/process_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "segment/adopt.h"

namespace lockstep::readers::native {
namespace {

using format::FileHeader;
using format::SegmentHeader;

template <class T>
bool read_value(const InputFile& file, uint64_t offset, T& value) {
  return file.read_at(offset, std::as_writable_bytes(std::span(&value, 1))) == sizeof value;
}

// Between two reads of memory that another process writes. System calls do not order them on every CPU.
void in_order() { std::atomic_thread_fence(std::memory_order_acquire); }

}  // namespace

Result<ProcessBytes> ProcessBytes::open(const std::string& path) {
  LOCKSTEP_ASSIGN(InputFile first, InputFile::open(path));
  FileHeader header{};
  SegmentHeader own{};
  std::optional<InputFile> segment;
  if (read_value(first, 0, header)) segment = open_segment(first, header, own);
  // It names no segment, or no more: the file is whole.
  if (header.segment[0] == 0) return ProcessBytes(std::move(first));
  // The table before the file: what has left the segment is there.
  ProcessBytes bytes(std::move(first));
  if (segment) {
    bytes.segment_ = std::move(segment);
    bytes.own_ = own;
    bytes.read_table();
    in_order();
  }
  // Opened again after the table, so that its size is of a moment when all that had left the segment was in
  // it.
  LOCKSTEP_ASSIGN(bytes.file_, InputFile::open(path));
  bytes.size_ = bytes.file_.size();
  if (!bytes.places_.empty())
    bytes.size_ =
        std::max(bytes.size_, format::chunk_offset(bytes.places_.back().number) + format::kChunkBytes);
  return bytes;
}

// Only the file's owner can have made it, and only for this file.
std::optional<InputFile> ProcessBytes::open_segment(const InputFile& file, const FileHeader& header,
                                                    SegmentHeader& own) {
  // The name comes from the file: one with a slash could lead anywhere, so only names of Lockstep's form are
  // opened.
  const size_t length = strnlen(header.segment, sizeof header.segment);
  if (length == 0 || length == sizeof header.segment || !segment::is_segment_name(header.segment) ||
      header.state == static_cast<uint32_t>(format::FileState::kClosed))
    return std::nullopt;
  auto segment = InputFile::open(std::string(format::kSegmentFolder) + "/" + header.segment);
  if (!segment || segment->owner() != file.owner() || !read_value(*segment, 0, own) ||
      std::memcmp(own.magic, format::kSegmentMagic, sizeof own.magic) != 0 ||
      own.version != format::kSegmentVersion || own.places > format::kMostPlaces ||
      own.key != header.segment_key)
    return std::nullopt;
  return std::move(*segment);
}

void ProcessBytes::read_table() {
  // `own_.places` was bounded when the segment was opened.
  std::vector<uint32_t> table(own_.places);
  const size_t got = segment_->read_at(format::kSegmentHeaderBytes, std::as_writable_bytes(std::span(table)));
  table.resize(got / sizeof(uint32_t));
  for (uint32_t place = 0; place < table.size(); ++place) {
    if (table[place] != 0 && table[place] != format::kPlaceClaimed)
      places_.push_back({table[place] - 1, place});
  }
  std::sort(places_.begin(), places_.end(), [](Place a, Place b) { return a.number < b.number; });
}

const ProcessBytes::Place* ProcessBytes::find(uint32_t number) const {
  auto at = std::lower_bound(places_.begin(), places_.end(), number,
                             [](const Place& place, uint32_t wanted) { return place.number < wanted; });
  return at != places_.end() && at->number == number ? &*at : nullptr;
}

// What a tool asks for is in the file; all else is newer in the segment.
size_t ProcessBytes::read_header(uint64_t offset, std::span<std::byte> out) const {
  FileHeader header{}, there{};
  uint32_t closed = 0;
  if (!read_value(*segment_, format::segment_file_offset(own_.places), header) ||
      !read_value(*segment_, offsetof(SegmentHeader, closed), closed) || !read_value(file_, 0, there) ||
      there.state == static_cast<uint32_t>(format::FileState::kClosed))
    return file_.read_at(offset, out);
  header.control = there.control;
  header.request = there.request;
  header.sealed_ticks = 0;  // seals are in the file
  // What was handed out since this was opened is not seen.
  // Chunks of which the table was read too early would count as missing.
  const uint64_t seen =
      (std::max<uint64_t>(size_, format::kHeaderBytes) - format::kHeaderBytes) / format::kChunkBytes;
  if (header.chunks_claimed > seen) header.chunks_claimed = static_cast<uint32_t>(seen);
  if (closed != 0 && header.state == static_cast<uint32_t>(format::FileState::kOpen))
    header.state = static_cast<uint32_t>(format::FileState::kClosed);
  const size_t size = offset < sizeof header ? std::min<size_t>(out.size(), sizeof header - offset) : 0;
  if (size != 0) std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&header) + offset, size);
  return size;
}

size_t ProcessBytes::read_at(uint64_t offset, std::span<std::byte> out, bool* is_live) const {
  if (is_live != nullptr) *is_live = false;
  if (!segment_) return file_.read_at(offset, out);
  if (offset < format::kHeaderBytes) return read_header(offset, out);
  const uint64_t number = (offset - format::kHeaderBytes) / format::kChunkBytes;
  const uint64_t within = (offset - format::kHeaderBytes) % format::kChunkBytes;
  out = out.first(std::min<uint64_t>(out.size(), format::kChunkBytes - within));
  const Place* place = number < UINT32_MAX ? find(static_cast<uint32_t>(number)) : nullptr;
  if (place == nullptr) return file_.read_at(offset, out);
  // The bytes first, then the table's entry: an entry that is the same afterwards proves that the place was
  // not given away in between.
  const uint64_t base = format::segment_file_offset(own_.places);
  const size_t got = segment_->read_at(base + format::chunk_offset(place->place) + within, out);
  uint32_t entry = 0;
  in_order();
  read_value(*segment_, format::kSegmentHeaderBytes + uint64_t{place->place} * sizeof entry, entry);
  in_order();
  if (entry != place->number + 1) return file_.read_at(offset, out);
  if (is_live != nullptr) *is_live = true;
  return got;
}

uint64_t ProcessBytes::next_data(uint64_t offset) const {
  const uint64_t next = std::max(file_.next_data(offset), offset);
  const uint64_t number =
      offset < format::kHeaderBytes ? 0 : (offset - format::kHeaderBytes) / format::kChunkBytes;
  auto at = std::lower_bound(places_.begin(), places_.end(), number,
                             [](const Place& place, uint64_t wanted) { return place.number < wanted; });
  if (at == places_.end()) return next;
  const uint64_t there = format::chunk_offset(at->number);
  // Holes of the file end where the segment has a chunk.
  return offset >= file_.size() ? std::max(there, offset) : std::min(next, std::max(there, offset));
}

}  // namespace lockstep::readers::native
