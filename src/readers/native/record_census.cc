// SPDX-License-Identifier: Apache-2.0
// Looks over all records of a file before any is decoded: which ranges of each chunk are good, how many
// records of each kind they hold (so that tables are made in their size at once), and what is missing. Proof
// comes from seals first. What no seal covers is walked entry by entry with a test of what a record can be;
// behind a place that cannot be read the walk begins again, because one torn record is no reason to give up
// the hour that follows it. Whatever was read without proof, behind damage, is remembered as such: the
// analyses may not blame a rank by it.
#include "readers/native/record_census.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "model/record_gaps.h"
#include "readers/native/file/plausible.h"
#include "readers/native/file/seal_check.h"

namespace lockstep::readers::native {
namespace {

using format::Purpose;

// Chunk numbers that are not in the file: recycled by ring retention, the oldest first, or gone.
void count_missing(const FileView& view, std::span<const Chunk> chunks, ReadLosses& losses) {
  if (chunks.empty()) return;
  const bool ring = view.header().retention == format::Retention::kRing;
  const uint64_t recycled = ring ? chunks.front().chunk_no : 0;
  uint64_t missing = uint64_t{chunks.back().chunk_no} + 1 - recycled - chunks.size();
  if (ring && view.capturing()) missing = 0;  // recycled while its neighbours were looked at
  losses.add("overwritten_chunk", recycled, [&] {
    return "chunks of 32 KiB that ring retention has recycled (their records: see capture/overwritten): " +
           view.path();
  });
  losses.add("missing_chunk", missing, [&] {
    return "chunks of 32 KiB that should be in the file and are not, records unknown: " + view.path();
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

// One chunk, with a new begin behind each piece of damage.
class Walk {
 public:
  Walk(const FileView& view, const Plausible& plausible, const Chunk& chunk, const ChunkBuffer& buffer,
       RecordCensus& census)
      : view_(view), plausible_(plausible), chunk_(chunk), buffer_(buffer), census_(census) {}

  RecordChunk run(const SealCheck& seal, bool has_successor, ReadLosses& losses) {
    RecordChunk found{.chunk = chunk_, .ranges = {}};
    // Three kinds of bytes: proven, contradicted and not covered. Each is counted by itself.
    for (const UnitRange& range : seal.good) take_proven(range, found);
    found.is_end_known = seal.is_end_good;
    if (seal.damaged_blocks != 0) lose_blocks(seal, found, losses);
    if (seal.are_late_changed) {
      census_.is_unproven = true;
      losses.add("damaged_time", 1, [&] {
        return "chunks of which stops or states of records are damaged, first " + view_.where(chunk_, 0);
      });
    }
    if (seal.covered < format::kLastUnit) take_unproven(seal, found, losses);
    if (has_successor && next_in_list() == 0) lose_end(found, losses);
    return found;
  }

 private:
  uint32_t next_in_list() const {
    format::ChunkHeader header{};
    std::memcpy(&header, buffer_.bytes.data(), sizeof header);
    return header.next;
  }

  // A seal proves what was written, so these records need no test of what they can be.
  void take_proven(const UnitRange& range, RecordChunk& found) {
    for (RecordCursor cursor(buffer_, range); cursor.next();) {
      ++census_.by_kind[static_cast<uint8_t>(cursor.head().kind)];
      ++found.records;
    }
    found.ranges.push_back(range);
    census_.good_units += range.end - range.begin;
  }

  void lose_blocks(const SealCheck& seal, const RecordChunk& found, ReadLosses& losses) {
    // Once a chunk is full its header counts its records; before that the number of blocks is all that is
    // known.
    const uint64_t rest = chunk_.entries > found.records ? chunk_.entries - found.records : 0;
    losses.add("damaged_record", std::max<uint64_t>(rest, seal.damaged_blocks), [&] {
      return "records (or pieces of 4 KiB of them) that contradict their checksum, first in " +
             view_.where(chunk_, 0);
    });
    census_.lost_units += uint64_t{seal.damaged_blocks} * format::kUnitsPerChunk / format::kSealBlocks;
  }

  // Whatever has a successor was full, and names it. Where it does not, the file has an older copy.
  void lose_end(RecordChunk& found, ReadLosses& losses) {
    const uint32_t end = found.ranges.empty() ? format::kChunkHeaderUnits : found.ranges.back().end;
    found.is_end_known = false;
    census_.lost_units += format::kLastUnit - end;
    losses.add("missing_record", 1, [&] {
      return "ends of chunks (32 KiB at most of each) that were written before the chunk was full, first " +
             view_.where(chunk_, end);
    });
  }

  // What no seal covers.
  void take_unproven(const SealCheck& seal, RecordChunk& found, ReadLosses& losses) {
    uint64_t gaps = 0;
    uint32_t first_gap = 0;
    const char* problem = nullptr;
    const bool is_sealed = seal.state != SealCheck::State::kNone;
    for (uint32_t begin = seal.covered;;) {
      // In turns: read on while records are possible, note the gap, look for the next place at which some
      // begin.
      const char* stop = take(begin, found);
      const uint32_t at = end_, next = next_begin(at, stop == nullptr, found.records, is_sealed);
      const bool is_end = stop == nullptr && next == 0 && (is_sealed || !ends_early(at, found.records));
      found.is_end_known = is_end && (found.is_end_known || at > seal.covered);
      if (stop == nullptr && next != 0) stop = "missing_record";
      if (stop != nullptr && gaps++ == 0) problem = stop, first_gap = at;
      if (next == 0) break;
      begin = next;
    }
    uint64_t rest = chunk_.entries > found.records ? chunk_.entries - found.records : 0;
    if (is_sealed) rest = 0;  // counted where its checksum was
    if (problem == nullptr && rest != 0) problem = "missing_record", first_gap = end_;
    if (problem == nullptr) return;
    const uint64_t lost = std::max(rest, gaps);
    // A cut loses its end and leaves the rest as it was written; any other damage may have touched that as
    // well.
    census_.is_unproven = census_.is_unproven || std::string_view(problem) != "cut_record";
    // How large lost records were is unknown: each is taken for a ShortColl.
    census_.lost_units += lost * sizeof(format::ShortCollRecord) / format::kUnitBytes;
    losses.add(problem, lost, [&] {
      return (std::string_view(problem) == "missing_record"
                  ? "records that their chunk once held and that are gone, first "
                  : "records (or parts of chunks of unknown content) that cannot be read, first ") +
             view_.where(chunk_, first_gap);
    });
  }

  // Good records from `begin` on; why they end there, nullptr at the end of what was written.
  const char* take(uint32_t begin, RecordChunk& found) {
    RecordCursor cursor(buffer_, {begin, format::kLastUnit});
    bool is_good = true;
    end_ = begin;
    while (cursor.next() && (is_good = plausible_(cursor.head()))) {
      ++census_.by_kind[static_cast<uint8_t>(cursor.head().kind)];
      ++found.records;
      end_ =
          cursor.unit() + format::record_bytes(static_cast<uint8_t>(cursor.head().kind)) / format::kUnitBytes;
    }
    if (end_ > begin) found.ranges.push_back({begin, end_});
    census_.good_units += end_ - begin;
    return is_good ? cursor.problem() : "bad_record";
  }

  // Where records go on behind damage at `at`; 0 nowhere. Behind an end that looks clean they do not, unless
  // the chunk once held more; in a ring older bytes lie there.
  uint32_t next_begin(uint32_t at, bool is_clean, uint32_t records, bool is_sealed) const {
    const bool ring = view_.header().retention == format::Retention::kRing;
    if (is_clean && (is_sealed || (chunk_.entries == 0 ? ring : records >= chunk_.entries))) return 0;
    for (uint32_t unit = at + 1; unit < format::kLastUnit; ++unit) {
      if (begins_run(unit)) return unit;
    }
    return 0;
  }

  // A record with a time, and behind it another one or the end of what was written.
  // Kinds without a time cannot begin a run, as nothing in them can be tested.
  bool begins_run(uint32_t unit) const {
    RecordCursor cursor(buffer_, {unit, format::kLastUnit});
    if (!cursor.next() || !Plausible::has_time(cursor.head().kind) || !plausible_(cursor.head()))
      return false;
    // One record that looks right may be chance; two in a row, or one at the end, are taken.
    if (cursor.next()) return plausible_(cursor.head());
    return cursor.problem() == nullptr;
  }

  // A full chunk has no room for another record.
  bool ends_early(uint32_t at, uint32_t records) const {
    // No record is larger, and capture leaves a chunk only when its next record does not fit.
    constexpr uint32_t kMostUnits = sizeof(format::ApiOpRecord) / format::kUnitBytes;
    return chunk_.entries > records && at + kMostUnits <= format::kLastUnit;
  }

  const FileView& view_;
  const Plausible& plausible_;
  const Chunk& chunk_;
  const ChunkBuffer& buffer_;
  RecordCensus& census_;
  uint32_t end_ = 0;  // behind the last good record
};

}  // namespace

RecordCensus take_census(const FileView& view, ReadLosses& losses) {
  RecordCensus census;
  const Plausible plausible(view);
  auto buffer = std::make_unique<ChunkBuffer>();
  count_duplicates(view, *buffer, losses);
  for (uint16_t log : view.logs()) {
    std::span<const Chunk> chunks = view.chunks(Purpose::kRecords, log);
    count_missing(view, chunks, losses);
    LogCensus& entry = census.logs.emplace_back(LogCensus{.log = log, .chunks = {}});
    entry.chunks.reserve(chunks.size());
    for (size_t i = 0; i < chunks.size(); ++i) {
      SealCheck seal;
      if (!read_checked(view, chunks[i], *buffer, seal, losses))
        continue;  // recycled just now: its number is missing, the new one comes later
      const bool has_successor = i + 1 < chunks.size() && chunks[i + 1].chunk_no == chunks[i].chunk_no + 1;
      Walk walk(view, plausible, chunks[i], *buffer, census);
      entry.chunks.push_back(walk.run(seal, has_successor, losses));
    }
  }
  return census;
}

namespace {

// What is missing is at most so small a part of what is there: what a rank does again and again shows all the
// same.
constexpr uint64_t kSlightShare = 20;

// Chunks whose numbers are missing before the newest of their list.
uint64_t missing_inside(const FileView& view, Purpose purpose, uint16_t log) {
  const std::span<const Chunk> chunks = view.chunks(purpose, log);
  return chunks.empty() ? 0 : uint64_t{chunks.back().chunk_no} + 1 - chunks.size();
}

// The list goes on with a chunk that is not there. One that was just being set up has nothing in it.
bool has_lost_successor(const FileView& view, Purpose purpose, uint16_t log) {
  const std::span<const Chunk> chunks = view.chunks(purpose, log);
  return !chunks.empty() && chunks.back().next != 0 &&
         (!view.capturing() || chunks.back().next < view.header().chunks_claimed);
}

bool lacks_definitions(const FileView& view, const ReadLosses& losses) {
  auto lacks = [&](Purpose purpose, uint16_t log) {
    return missing_inside(view, purpose, log) != 0 || has_lost_successor(view, purpose, log);
  };
  if (losses.count("bad_definition") + losses.count("damaged_definition") != 0 || lacks(Purpose::kMeta, 0))
    return true;
  const std::vector<uint16_t> logs = view.logs();
  return std::any_of(logs.begin(), logs.end(), [&](uint16_t log) { return lacks(Purpose::kDefs, log); });
}

bool lacks_newest(const FileView& view, const RecordCensus& census) {
  uint64_t inside = missing_inside(view, Purpose::kMeta, 0);
  for (const LogCensus& log : census.logs) {
    if (!log.chunks.empty() && !log.chunks.back().is_end_known) return true;
    if (has_lost_successor(view, Purpose::kRecords, log.log)) return true;
    inside +=
        missing_inside(view, Purpose::kRecords, log.log) + missing_inside(view, Purpose::kDefs, log.log);
  }
  // One that no list misses may be the newest of its list, or all of it. A ring always misses some.
  const uint64_t unreadable = view.unreadable_chunks() + view.duplicates().size();
  return unreadable > (view.header().retention == format::Retention::kRing ? 0 : inside);
}

}  // namespace

void count_gaps(const FileView& view, const RecordCensus& census, bool all_named, ReadLosses& losses) {
  auto count = [&](std::initializer_list<const char*> kinds) {
    uint64_t sum = 0;
    for (const char* kind : kinds) sum += losses.count(kind);
    return sum;
  };
  const uint64_t damaged = count({"bad_record", "unknown_record", "missing_record", "damaged_record"});
  const uint64_t nameless =
      all_named ? count({"unknown_comm", "unknown_shape", "bad_comm_number", "bad_definition_number"}) : 0;
  // Chunks that the storage gave at the scan and not any more.
  const uint64_t unread = losses.count(kLossUnread) - view.unread_chunks();  // since the scan
  const uint64_t chunks = unread + std::max<uint64_t>(view.unreadable_chunks() + view.duplicates().size(),
                                                      losses.count("missing_chunk"));
  if (view.is_unsaved()) {
    losses.add(model::kLossIncompleteEnd, 1, [&] {
      return "ring in its host's memory, newer than its file (`lockstep control --save` there writes it): " +
             view.path();
    });
    return;
  }
  const bool at_end = view.is_cut() || unread != 0 || nameless != 0 || lacks_definitions(view, losses) ||
                      lacks_newest(view, census);
  const uint64_t records = damaged + losses.count("cut_record") + nameless;
  if (!at_end && records + chunks + losses.count("damaged_time") == 0) return;
  const uint64_t lost_units = census.lost_units + chunks * (format::kLastUnit - format::kChunkHeaderUnits);
  // In units of what was written, not in records: how many were in what is lost, nobody knows.
  const bool is_slight = lost_units * kSlightShare <= census.good_units;
  losses.add(at_end      ? model::kLossIncompleteEnd
             : is_slight ? model::kLossIncompleteSlightly
                         : model::kLossIncompleteMiddle,
             std::max<uint64_t>(chunks != 0 ? chunks : records, 1), [&] {
               return (chunks != 0 ? "of " + std::to_string(view.used_chunks()) + " chunks"
                                   : std::string("of its records or more")) +
                      " cannot be read" + (at_end ? ", the newest records among them: " : ": ") + view.path();
             });
  const bool is_only_cut = view.is_cut() && chunks == count({"cut_file"}) && damaged == 0;
  const bool is_unproven = census.is_unproven || (!view.has_seals() && !is_only_cut);
  losses.add(model::kLossUnproven, is_unproven,
             [&] { return "damaged file whose rest no checksum proves: " + view.path(); });
}

}  // namespace lockstep::readers::native
