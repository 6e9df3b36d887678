// SPDX-License-Identifier: Apache-2.0
// Follows a list of chunks that its owner goes on writing. The number of a chunk is looked at before and
// after every step: in a ring the owner may recycle the chunk under the reader, and then the list goes on
// from the new contents, with what was missed counted. A link is followed only once the chunk before it has
// nothing more to give, as the owner stores the link after its last entry.
#include "readers/native/file/chunk_follower.h"

namespace lockstep::readers::native {
bool ChunkFollower::read_header(const ProcessBytes& file, uint32_t index, format::ChunkHeader& header) const {
  return file.read_at(format::chunk_offset(index), std::as_writable_bytes(std::span(&header, 1))) ==
             sizeof header &&
         header.magic == format::kChunkMagic && header.log == log_ && header.purpose == purpose_;
}

bool ChunkFollower::next_of(const ProcessBytes& file, uint32_t& index, format::ChunkHeader& header) const {
  uint32_t chunk_no = header.chunk_no, next = header.next;
  // A number that does not follow: a link that is damaged, or a chunk that is just being recycled.
  if (next == 0 || !read_header(file, next, header) || header.chunk_no != chunk_no + 1) return false;
  index = next;
  return true;
}

void ChunkFollower::begin(uint32_t index, uint32_t chunk_no) {
  index_ = index;
  chunk_no_ = chunk_no;
  unit_ = format::kChunkHeaderUnits;
  ++chunks_read_;
}

bool ChunkFollower::rejoin(const ProcessBytes& file, format::ChunkHeader& header) {
  if (!read_header(file, index_, header)) {
    lost_ = true;
    return false;
  }
  if (header.chunk_no != chunk_no_) {  // recycled meanwhile: the list goes on from its new contents
    if (header.chunk_no > chunk_no_) chunks_missed_ += header.chunk_no - chunk_no_ - 1;
    begin(index_, header.chunk_no);
  }
  return true;
}

void ChunkFollower::skip_to_newest(const ProcessBytes& file, uint32_t most_chunks) {
  format::ChunkHeader header{};
  if (!rejoin(file, header)) return;
  std::vector<uint32_t> ahead;  // indexes of the chunks behind this one
  // Ends even in a cycle of links, as each chunk has to have the number behind that of the one before.
  for (uint32_t index = index_; next_of(file, index, header);) ahead.push_back(index);
  if (ahead.size() < most_chunks) return;
  // A reader that cannot keep up shows the newest and says how much it left out.
  size_t missed = ahead.size() - most_chunks;
  chunks_missed_ += missed;
  begin(ahead[missed], chunk_no_ + static_cast<uint32_t>(missed) + 1);
}

// 16 bytes tell whether the 32 KiB are worth reading.
bool ChunkFollower::has_entry(const ProcessBytes& file) const {
  std::array<std::byte, format::kUnitBytes> unit{};
  return unit_ < format::kLastUnit &&
         file.read_at(format::entry_offset(index_, unit_), unit) == unit.size() &&
         format::units_of_head(unit.data(), purpose_) != 0;
}

bool ChunkFollower::go_on(const ProcessBytes& file) {
  format::ChunkHeader header{};
  if (!read_header(file, index_, header) || header.chunk_no != chunk_no_) return false;
  uint32_t index = index_;
  if (!next_of(file, index, header)) return false;
  // What was published before the link is there now at the latest.
  if (has_entry(file)) return true;
  begin(index, header.chunk_no);
  return true;
}

}  // namespace lockstep::readers::native
