// SPDX-License-Identifier: Apache-2.0
// A seal was made while the process went on writing. So it proves the entries that were there then, and says
// nothing of those behind. Late fields are judged apart: they may have changed since by right, but then they
// hold a time after the last sealing, and a change without one is damage. If the whole does not fit, each
// block of 4 KiB is tried by itself; the first entry behind a damaged block is found by trying where its
// checksum fits, as entries do not begin at block borders.
#include "readers/native/file/seal_check.h"

#include <algorithm>
#include <cstring>

#include "format/seal.h"

namespace lockstep::readers::native {
namespace {

using format::Purpose;

class Checker {
 public:
  Checker(const FileView& view, const ChunkBuffer& buffer)
      : view_(view), bytes_(reinterpret_cast<const unsigned char*>(buffer.bytes.data())) {
    std::memcpy(&header_, bytes_, sizeof header_);
  }

  SealCheck run() {
    const format::ChunkSeal& seal = header_.seal;
    if (!format::has_seal(header_.purpose)) return check_;
    if (!view_.has_seal(header_)) {
      // A closed file is sealed to its end, so a chunk without a seal has lost it.
      if (view_.sealed_at_close()) fail();
      return check_;
    }
    // A seal of an impossible size is itself damaged, and proves nothing of the entries.
    if (seal.units < format::kChunkHeaderUnits || seal.units > format::kLastUnit) {
      fail();
      return check_;
    }
    check_.covered = seal.units;
    format::SealSums sums(header_.purpose);
    if (walk(format::kChunkHeaderUnits, seal.units, sums) == seal.units && sums.all() == seal.entries) {
      check_.state = SealCheck::State::kGood;
      if (seal.units > format::kChunkHeaderUnits)
        check_.good.push_back({format::kChunkHeaderUnits, seal.units});
      // Late fields differ by right if one of them was filled in after the sealing began.
      check_.are_late_changed = sums.late() != seal.late && latest_late() < view_.header().sealed_ticks;
      return check_;
    }
    check_.state = SealCheck::State::kDamaged;
    check_blocks();
    return check_;
  }

 private:
  void fail() {
    check_.state = SealCheck::State::kDamaged;
    check_.covered = format::kLastUnit;
    check_.damaged_blocks = format::kSealBlocks;
    check_.is_end_good = false;
  }

  // Sums up the entries that begin before `end`; where the walk stops.
  // Sizes come from the entries, which may be damaged: the walk stops where one cannot be.
  uint32_t walk(uint32_t unit, uint32_t end, format::SealSums& sums) const {
    while (unit < end) {
      const uint32_t units = format::entry_units(bytes_, header_.purpose, unit);
      if (units == 0) break;
      sums.add(bytes_, unit, units);
      unit += units;
    }
    return unit;
  }

  // Each by itself. The first entry of a block behind a damaged one begins where its checksum fits.
  void check_blocks() {
    constexpr uint32_t kLongest =
        (sizeof(format::DefHead) + format::kMaxKernelNameBytes) / format::kUnitBytes + 1;
    uint32_t known = format::kChunkHeaderUnits;
    for (uint32_t block = 0; block * format::kSealBlockUnits < check_.covered; ++block) {
      const uint32_t begin = std::max(block * format::kSealBlockUnits, format::kChunkHeaderUnits);
      uint32_t end = 0;
      // Entries that follow a good block begin where that ended; behind a damaged one every unit is tried
      // that the longest entry can reach.
      if (known != 0) {
        end = good_end(block, known);
      } else {
        const uint32_t most = header_.purpose == Purpose::kRecords ? format::kMostRecordWords / 2 : kLongest;
        for (uint32_t first = begin; first < begin + most && end == 0; ++first) {
          end = good_end(block, first);
          known = first;
        }
      }
      check_.is_end_good = end != 0;
      if (end == 0) {
        ++check_.damaged_blocks;
      } else if (end > known) {
        if (!check_.good.empty() && check_.good.back().end == known)
          check_.good.back().end = end;
        else
          check_.good.push_back({known, end});
      }
      known = end;
    }
  }

  // Where the block's entries end if the first begins at `first` and they are what was sealed; else 0.
  uint32_t good_end(uint32_t block, uint32_t first) const {
    const uint32_t behind = (block + 1) * format::kSealBlockUnits, end = std::min(behind, check_.covered);
    format::SealSums sums(header_.purpose);
    const uint32_t at = walk(first, end, sums);
    // The walk has to reach the block's end; an entry may cross it, and is of the block that it begins in.
    // Sixteen bits of checksum alone would fit one time in 65,536 by chance.
    const bool is_there = behind < check_.covered ? at >= behind : at == check_.covered;
    return is_there && sums.block(block) == header_.seal.blocks[block] ? at : 0;
  }

  uint64_t latest_late() const {
    uint64_t latest = 0;
    // Definitions have no late fields, so none of theirs can be wrong.
    if (header_.purpose != Purpose::kRecords) return UINT64_MAX;
    for (uint32_t unit = format::kChunkHeaderUnits; unit < check_.covered;) {
      latest = std::max(latest, format::latest_late_ticks(bytes_ + size_t{unit} * format::kUnitBytes));
      unit += std::max(format::entry_units(bytes_, header_.purpose, unit), 1u);
    }
    return latest;
  }

  const FileView& view_;
  const unsigned char* bytes_;
  format::ChunkHeader header_{};
  SealCheck check_;
};

}  // namespace

bool read_checked(const FileView& view, const Chunk& chunk, ChunkBuffer& buffer, SealCheck& check,
                  ReadLosses& losses) {
  if (!view.read(chunk, buffer)) {
    if (buffer.valid < sizeof(format::ChunkHeader)) view.note_unread(chunk.index, losses);
    return false;
  }
  check = Checker(view, buffer).run();
  // A seal may have been in the making.
  if (check.state == SealCheck::State::kDamaged && view.capturing()) {
    if (!view.read(chunk, buffer)) return false;
    check = Checker(view, buffer).run();
  }
  return true;
}

}  // namespace lockstep::readers::native
