// SPDX-License-Identifier: Apache-2.0
// Counts what the process's own file says, inside the job. A look is bounded, since the job waits for it, and
// what it does not reach the next one does; nothing allocates but tables that grow.
#include "capture/scorep/file_counters.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "format/element_size.h"
#include "format/losses.h"
#include "format/segment_layout.h"

namespace lockstep::capture::scorep {
namespace {

using format::Def;
using format::Kind;
using format::Purpose;

// Bounds a number from the file: 512 GiB of chunks.
constexpr uint32_t kMaxChunks = 1 << 24;
// Of one look, which the job waits for.
constexpr uint32_t kMostHeaders = 1024, kMostRecordChunks = 64;

// Room for one more in an array that grows; false without memory.
template <class T>
bool make_room(T*& array, uint32_t size, uint32_t& room) {
  if (size < room) return true;
  const uint32_t wanted = room == 0 ? 64 : room * 2;
  void* const grown = realloc(array, wanted * sizeof(T));
  if (grown == nullptr) return false;
  array = static_cast<T*>(grown);
  room = wanted;
  return true;
}

// Events that are passed to hold_open().
bool is_held(Kind kind) {
  return kind == Kind::kCollApi || kind == Kind::kP2pApi || kind == Kind::kApiOp || kind == Kind::kGroupApi ||
         kind == Kind::kKernelCh;
}

}  // namespace

bool FileCounters::read(uint64_t offset, void* out, size_t size) const {
  return read_some(offset, out, size) == size;
}

// What is in the segment is newer; a chunk that leaves it while it is read is in the file by then.
size_t FileCounters::read_some(uint64_t offset, void* out, size_t size) const {
  // An error counts as an end: the next look asks again.
  const auto read_file = [&](int file, uint64_t at) {
    const ssize_t got = pread(file, out, size, static_cast<off_t>(at));
    return got < 0 ? 0 : static_cast<size_t>(got);
  };
  const uint64_t base = format::segment_file_offset(segment_places_);
  if (segment_ >= 0 && offset < format::kHeaderBytes) return read_file(segment_, base + offset);
  const auto number = static_cast<uint32_t>((offset - format::kHeaderBytes) / format::kChunkBytes);
  const Place *const begin = places_, *const end = begin + places_size_;
  const Place* const at = std::lower_bound(
      begin, end, number, [](const Place& place, uint32_t wanted) { return place.number < wanted; });
  if (segment_ < 0 || at == end || at->number != number) return read_file(file_, offset);
  const uint64_t moved = uint64_t{at->place} * format::kChunkBytes + (offset - format::chunk_offset(number));
  const size_t got = read_file(segment_, base + format::kHeaderBytes + moved);
  uint32_t entry = 0;
  const auto entry_at = static_cast<off_t>(format::kSegmentHeaderBytes + uint64_t{at->place} * sizeof entry);
  std::atomic_thread_fence(std::memory_order_acquire);  // as between any two reads beside a writer
  const bool is_still =
      pread(segment_, &entry, sizeof entry, entry_at) == ssize_t{sizeof entry} && entry == number + 1;
  std::atomic_thread_fence(std::memory_order_acquire);
  return is_still ? got : read_file(file_, offset);
}

void FileCounters::open_segment() {
  char path[sizeof(format::kSegmentFolder) + sizeof(header_.segment) + 1];
  // The name comes from the file: one with a folder in it is not followed.
  const size_t length = strnlen(header_.segment, sizeof(header_.segment) - 1);
  if (length == 0 || memchr(header_.segment, '/', length) != nullptr) return;
  snprintf(path, sizeof(path), "%s/%.*s", format::kSegmentFolder, static_cast<int>(length), header_.segment);
  segment_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  format::SegmentHeader own;
  // The key proves that it is this file's; the number of places is bounded before it becomes memory.
  if (segment_ >= 0 && pread(segment_, &own, sizeof(own), 0) == ssize_t{sizeof(own)} &&
      own.key == header_.segment_key && own.places <= format::kMostPlaces) {
    table_ = static_cast<uint32_t*>(malloc(own.places * sizeof(*table_)));
    places_ = static_cast<Place*>(malloc(own.places * sizeof(*places_)));
    segment_places_ = own.places;
    if (table_ != nullptr && places_ != nullptr) return;
  }
  if (segment_ >= 0) ::close(segment_);
  segment_ = -1;
}

void FileCounters::read_table() {
  const size_t size = segment_places_ * sizeof(*table_);
  places_size_ = 0;
  if (segment_ < 0 ||
      pread(segment_, table_, size, format::kSegmentHeaderBytes) != static_cast<ssize_t>(size))
    return;
  for (uint32_t place = 0; place < segment_places_; ++place) {
    if (table_[place] != 0 && table_[place] != format::kPlaceClaimed)
      places_[places_size_++] = {table_[place] - 1, place};
  }
  std::sort(places_, places_ + places_size_, [](Place a, Place b) { return a.number < b.number; });
}

bool FileCounters::open(int file) {
  file_ = file;
  // A child inherits the descriptors of its parent: the pid says whose file it is.
  const bool is_ours = read(0, &header_, sizeof(header_)) &&
                       memcmp(header_.magic, format::kMagic, sizeof(format::kMagic)) == 0 &&
                       header_.major == format::kMajor && header_.chunk_bytes == format::kChunkBytes &&
                       header_.header_bytes == format::kHeaderBytes && header_.pid == getpid() &&
                       header_.state == static_cast<uint32_t>(format::FileState::kOpen);
  if (is_ours)
    open_segment();
  else
    close();
  return is_ours;
}

void FileCounters::close() {
  if (file_ >= 0) ::close(file_);
  for (Log& log : logs_) free(log.element_bytes);
  free(chunks_);
  free(unpublished_);
  if (segment_ >= 0) ::close(segment_);
  free(table_);
  free(places_);
  file_ = segment_ = -1;
  table_ = nullptr;
  places_ = nullptr;
  chunks_ = nullptr;
  unpublished_ = nullptr;
  memset(logs_, 0, sizeof(logs_));
}

void FileCounters::add(Totals& totals, int64_t now_monotonic_ns) {
  // The table first: what has left the segment is in the file.
  read_table();
  format::FileHeader header;
  if (!read(0, &header, sizeof(header))) return;
  header_ = header;
  // The header's number is as old as the heartbeat.
  const uint32_t newest = places_size_ == 0 ? 0 : places_[places_size_ - 1].number + 1;
  const uint32_t claimed = std::min(std::max(header_.chunks_claimed, newest), kMaxChunks);
  find_chunks(claimed);
  follow_chunks(Purpose::kDefs, ~uint32_t{0});
  // Definitions first, of which a log has few: records name them. Behind in the headers, a chunk of
  // definitions may be among those that were not looked at yet.
  if (seen_ >= claimed) follow_chunks(Purpose::kRecords, kMostRecordChunks);
  if (header_.retention == format::Retention::kRing) {
    add_histograms(totals);
  } else {
    totals.operations += counted_.operations();
    totals.bytes += counted_.bytes();
    close_ended();
    totals.open += open_size_;
    for (uint32_t i = 0; i < open_size_; ++i) {
      const int64_t age = now_monotonic_ns - monotonic_of(open_[i].start);
      if (age > 0 && static_cast<uint64_t>(age) > totals.oldest_open_ns)
        totals.oldest_open_ns = static_cast<uint64_t>(age);
    }
  }
  add_losses(header_.losses, totals);
  for (const uint64_t count : header_.more_losses) totals.losses += count;
  for (const format::Loss kind : format::kDropped)
    if (kind >= format::kLossKinds) totals.dropped += header_.more_losses[kind - format::kLossKinds];
  for (const Log& log : logs_) {
    uint64_t losses[format::kLossKinds];
    if (log.losses_offset != 0 && read(log.losses_offset, losses, sizeof(losses))) add_losses(losses, totals);
  }
  totals.recorded += format::chunk_offset(claimed);
}

void FileCounters::find_chunks(uint32_t claimed) {
  // A chunk is claimed a moment before it is published.
  uint32_t kept = 0;
  for (uint32_t i = 0; i < unpublished_size_; ++i) {
    if (!add_chunk(unpublished_[i])) unpublished_[kept++] = unpublished_[i];
  }
  unpublished_size_ = kept;
  const uint32_t end = std::min(claimed, seen_ + kMostHeaders);
  // Each header once; what is not published yet is asked again with every look.
  for (; seen_ < end; ++seen_) {
    if (add_chunk(seen_)) continue;
    if (make_room(unpublished_, unpublished_size_, unpublished_room_))
      unpublished_[unpublished_size_++] = seen_;
  }
}

// False if it has no header yet.
bool FileCounters::add_chunk(uint32_t index) {
  format::ChunkHeader header;
  if (!read(format::chunk_offset(index), &header, sizeof(header)) || header.magic != format::kChunkMagic)
    return false;
  const bool is_ring = header_.retention == format::Retention::kRing;
  const bool is_wanted = header.purpose == Purpose::kDefs || header.purpose == Purpose::kHistogram ||
                         (header.purpose == Purpose::kRecords && !is_ring);
  // Without memory the chunk is passed over, and its events are not counted.
  if (is_wanted && header.log <= format::kMaxLogs && make_room(chunks_, chunks_size_, chunks_room_))
    chunks_[chunks_size_++] = {index, header.chunk_no, format::kChunkHeaderUnits, header.log, header.purpose};
  return true;
}

// At most so many chunks of one purpose; those that were not read come first the next time.
void FileCounters::follow_chunks(Purpose purpose, uint32_t most) {
  uint32_t kept = 0, i = 0;
  for (; i < chunks_size_ && most != 0; ++i) {
    Chunk chunk = chunks_[i];
    bool is_full = false;
    if (chunk.purpose == purpose) {
      is_full = read_chunk(chunk);
      --most;
    }
    if (!is_full) chunks_[kept++] = chunk;
  }
  Chunk* const end = std::copy(chunks_ + i, chunks_ + chunks_size_, chunks_ + kept);
  std::rotate(chunks_, chunks_ + kept, end);
  chunks_size_ = static_cast<uint32_t>(end - chunks_);
}

// True once nothing more comes.
bool FileCounters::read_chunk(Chunk& chunk) {
  format::ChunkHeader header;
  if (!read(format::chunk_offset(chunk.index), &header, sizeof(header))) return false;
  const size_t from = size_t{chunk.unit} * format::kUnitBytes;
  const auto read_to = [&](unsigned char* copy) {
    const size_t got =
        read_some(format::entry_offset(chunk.index, chunk.unit), copy + from, format::kChunkBytes - from);
    memset(copy + from + got, 0, format::kChunkBytes - from - got);
    return static_cast<uint32_t>((from + got) / format::kUnitBytes);
  };
  const uint32_t valid = read_to(buffer_);
  if (chunk.unit < format::kLastUnit && format::entry_units(buffer_, chunk.purpose, chunk.unit) != 0)
    format::join_copies(buffer_, again_, read_to(again_), chunk.purpose, chunk.unit);
  const format::WalkStop stop = chunk.purpose == Purpose::kDefs ? walk<format::DefHead>(chunk, valid)
                                                                : walk<format::RecordHead>(chunk, valid);
  // The next chunk was there before this look: this one was full then.
  return header.next != 0 || stop == format::WalkStop::kUnknown || stop == format::WalkStop::kTooLong;
}

// From the chunk's unit on, which moves to where the walk stops.
template <class Head>
format::WalkStop FileCounters::walk(Chunk& chunk, uint32_t valid_units) {
  format::Walk<Head> entry(buffer_, valid_units, chunk.unit);
  while (entry.next()) {
    // visit() makes handles by it.
    chunk.unit = entry.unit();
    visit(chunk, entry);
  }
  chunk.unit = entry.unit();
  return entry.stop();
}

void FileCounters::visit(const Chunk& chunk, const format::Walk<format::DefHead>& entry) {
  if (entry.head().kind == static_cast<uint16_t>(Def::kShape)) {
    add_shape(logs_[chunk.log], entry.as<format::ShapeDef>());
  } else if (entry.head().kind == static_cast<uint16_t>(Def::kLog)) {
    logs_[chunk.log].losses_offset =
        format::entry_offset(chunk.index, chunk.unit) + offsetof(format::LogDef, losses);
  }
}

void FileCounters::add_shape(Log& log, const format::ShapeDef& def) {
  const uint32_t number = def.head.id;
  if (number == 0 || number >= format::kShapeUnknown) return;
  if (number >= log.shapes_size) {
    const uint32_t wanted = (number / 64 + 1) * 64;
    void* const grown = realloc(log.element_bytes, wanted);
    if (grown == nullptr) return;
    log.element_bytes = static_cast<uint8_t*>(grown);
    memset(log.element_bytes + log.shapes_size, 0, wanted - log.shapes_size);
    log.shapes_size = wanted;
  }
  log.element_bytes[number] =
      format::element_bytes(def.datatype, strnlen(def.datatype, sizeof(def.datatype)));
}

uint64_t FileCounters::bytes_of(uint16_t log, uint16_t shape, uint64_t count) const {
  // An element of a type that is not known counts as one byte, as in the tools.
  const uint8_t known = shape < logs_[log].shapes_size ? logs_[log].element_bytes[shape] : uint8_t{0};
  return count * (known == 0 ? 1 : known);
}

void FileCounters::visit(const Chunk& chunk, const format::Walk<format::RecordHead>& entry) {
  const auto call = [&](const auto& record) {
    counted_.add_call(bytes_of(chunk.log, record.shape, record.count));
    hold_open(chunk, record.head);
  };
  const auto task = [&](const auto& record) {
    counted_.add_task(bytes_of(chunk.log, record.shape, record.count));
  };
  switch (entry.head().kind) {
    case Kind::kCollApi:
      return call(entry.as<format::CollApiRecord>());
    case Kind::kP2pApi:
      return call(entry.as<format::P2pApiRecord>());
    case Kind::kColl:
      return task(entry.as<format::CollRecord>());
    case Kind::kShortColl:
      return task(entry.as<format::ShortCollRecord>());
    case Kind::kP2p:
      return task(entry.as<format::P2pRecord>());
    case Kind::kCeColl:
      return task(entry.as<format::CeCollRecord>());
    case Kind::kApiOp: {
      const auto record = entry.as<format::ApiOpRecord>();
      counted_.add_task(record.in_count * record.element_bytes);
      return hold_open(chunk, record.head);
    }
    case Kind::kGroupApi:
    case Kind::kKernelCh:
      return hold_open(chunk, entry.head());
    case Kind::kState:
      if (entry.head().link == format::kStateStop)
        stop(entry.as<format::StateRecord>().target, entry.head().start);
      return;
    default:
      return;
  }
}

void FileCounters::hold_open(const Chunk& chunk, const format::RecordHead& head) {
  if ((head.flags & format::kFlagStopped) != 0 || open_size_ == kMostOpen) return;
  const uint64_t position = format::entry_position(chunk.chunk_no, chunk.unit);
  const uint64_t handle = format::make_handle(static_cast<uint32_t>(head.kind), chunk.log, position);
  // Logs are read one after the other: the stop may have been read before its event.
  for (const Stop& stop : stops_) {
    if (stop.handle == handle) return;
  }
  // Its stop may have been pushed out. Better not counted for once than open for ever.
  if (head.start <= forgotten_ticks_) return;
  open_[open_size_++] = {handle, format::entry_offset(chunk.index, chunk.unit), head.start};
}

void FileCounters::stop(uint64_t handle, uint64_t ticks) {
  for (uint32_t i = 0; i < open_size_; ++i) {
    if (open_[i].handle != handle) continue;
    open_[i] = open_[--open_size_];
    return;
  }
  if (!is_held(static_cast<Kind>(format::handle_kind(handle)))) return;
  Stop& oldest = stops_[next_stop_++ % kMostStops];
  forgotten_ticks_ = std::max(forgotten_ticks_, oldest.ticks);
  oldest = {handle, ticks};
}

void FileCounters::close_ended() {
  // At most kMostOpen small reads a look, of records that were open when they were read last.
  for (uint32_t i = 0; i < open_size_; ++i) {
    format::RecordHead head;
    if (!read(open_[i].offset, &head, sizeof(head)) || (head.flags & format::kFlagStopped) != 0)
      open_[i--] = open_[--open_size_];
  }
}

void FileCounters::add_histograms(Totals& totals) {
  for (uint32_t i = 0; i < chunks_size_; ++i) {
    if (chunks_[i].purpose != Purpose::kHistogram) continue;
    // Cells change while they are copied: a sum may be that of a moment later than its count.
    constexpr size_t kCells = format::kHistogramCells * sizeof(format::HistogramCell);
    static_assert(sizeof(format::ChunkHeader) + kCells <= format::kChunkBytes);
    if (!read(format::chunk_offset(chunks_[i].index) + sizeof(format::ChunkHeader), buffer_, kCells))
      continue;
    for (uint32_t cell = 0; cell < format::kHistogramCells; ++cell) {
      uint64_t key_ops_bytes[3];
      static_assert(offsetof(format::HistogramCell, key) == 0 &&
                    offsetof(format::HistogramCell, bytes) == 16);
      memcpy(key_ops_bytes, buffer_ + cell * sizeof(format::HistogramCell), sizeof(key_ops_bytes));
      if (key_ops_bytes[0] == 0) continue;
      totals.operations += key_ops_bytes[1];
      totals.bytes += key_ops_bytes[2];
    }
  }
}

void FileCounters::add_losses(const uint64_t (&losses)[format::kLossKinds], Totals& totals) const {
  for (const format::Loss kind : format::kDropped)
    if (kind < format::kLossKinds) totals.dropped += losses[kind];
  for (const uint64_t count : losses) totals.losses += count;
}

// The file's own clock by two instants that it gives, or by the rate it names.
int64_t FileCounters::monotonic_of(uint64_t ticks) const {
  const format::ClockAnchor& first = header_.first_anchor;
  const auto apart = static_cast<double>(header_.heartbeat_monotonic_ns - first.monotonic_ns);
  const auto between = static_cast<double>(header_.heartbeat_ticks - first.ticks);
  // Below a tenth of a second the errors of the two readings would show in the rate.
  const double ns_a_tick = apart >= 1e8 && between > 0 ? apart / between
                           : header_.tick_hz != 0      ? 1e9 / static_cast<double>(header_.tick_hz)
                                                       : 1;
  const auto after = static_cast<double>(static_cast<int64_t>(ticks - first.ticks));
  return first.monotonic_ns + static_cast<int64_t>(after * ns_a_tick);
}

}  // namespace lockstep::capture::scorep
