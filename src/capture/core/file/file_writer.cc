// SPDX-License-Identifier: Apache-2.0
// Copies chunks out of the segment while their threads go on writing, and puts the copies into the file in
// ascending order of their numbers, so that what is there when writing stops is a beginning without gaps. A
// chunk's place is given back only when nothing in it can change any more and the copy is written. Time is
// measured around each write: it is the only sign by which slow storage can be distinguished from a job that
// records much, and the two are different losses.
#include "capture/core/file/file_writer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/core/clock.h"
#include "capture/core/file/size_signal.h"
#include "capture/core/log/thread_log.h"
#include "format/seal.h"
#include "segment/chunk_image.h"
#include "segment/header_writer.h"

namespace lockstep::capture {
namespace {

using format::ChunkHeader;
using format::FileHeader;
using format::FileState;
using format::Purpose;

// A write that takes longer is not one into the page cache; nor are several that take longer for each chunk,
// of which one more counts a 32nd: a busy machine takes the processor away for some milliseconds.
constexpr int64_t kStuckNs = 100'000'000, kSlowChunkNs = 1'000'000, kChunksInMean = 32;

// Chunks are read while their threads write them: segment/chunk_image.cc says why a copy is right all the
// same.
#define LOCKSTEP_READS_BESIDE_WRITERS __attribute__((no_sanitize("thread")))

LOCKSTEP_READS_BESIDE_WRITERS void copy_words(void* to, const void* from, size_t size) {
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t word = __atomic_load_n(
        reinterpret_cast<const uint64_t*>(static_cast<const char*>(from) + at), __ATOMIC_RELAXED);
    memcpy(static_cast<char*>(to) + at, &word, sizeof word);
  }
}

// The place may get another chunk meanwhile, so `log` is bounded before anybody indexes a table by it.
LOCKSTEP_READS_BESIDE_WRITERS bool read_header(const char* chunk, ChunkHeader* header) {
  if (!segment::is_published(chunk)) return false;
  copy_words(header, chunk, sizeof *header);
  return header->log <= format::kMaxLogs;
}

ChunkHeader header_of(const unsigned char* image) {
  ChunkHeader header;
  memcpy(static_cast<void*>(&header), image, sizeof header);
  return header;
}

// Whether what was copied was not overwritten meanwhile.
LOCKSTEP_READS_BESIDE_WRITERS bool is_still(const char* chunk, const unsigned char* image) {
  const ChunkHeader copied = header_of(image);
  ChunkHeader now;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return read_header(chunk, &now) && now.chunk_no == copied.chunk_no && now.log == copied.log &&
         now.purpose == copied.purpose;
}

// Of a sealed copy: its seal says where the published entries end.
uint16_t entries_of(const unsigned char* image) {
  const ChunkHeader header = header_of(image);
  uint16_t entries = 0;
  for (uint32_t unit = format::kChunkHeaderUnits, units; unit < header.seal.units; unit += units, ++entries) {
    units = format::entry_units(image, header.purpose, unit);
    if (units == 0) break;
  }
  return entries;
}

template <class T>
// Zero, and without memory until it is used: a segment may have 2^20 places, and few processes use many.
T* map_array(uint32_t size) {
  void* memory = mmap(nullptr, uint64_t{size} * sizeof(T), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

}  // namespace

bool FileWriter::prepare(const ProcessFile& file) {
  if (places_ == nullptr) places_ = map_array<Place>(file.max_chunks());
  if (chunks_ == nullptr) chunks_ = map_array<Chunk>(file.max_chunks());
  return places_ != nullptr && chunks_ != nullptr;
}

// The chunks in use, sorted, and the newest of each list.
uint32_t FileWriter::collect(const ProcessFile& file) {
  memset(newest_, 0, sizeof newest_);
  has_claims_ = false;
  uint32_t count = 0;
  const uint32_t places = file.used_places();
  for (uint32_t place = 0; place < places; ++place) {
    const uint32_t entry = file.entry(place);
    if (entry == 0) continue;
    if (entry == format::kPlaceClaimed) {
      has_claims_ = true;
      continue;
    }
    chunks_[count++] = {entry, place};
    ChunkHeader header;
    // The newest number of each list says which chunks can still grow.
    if (!read_header(file.chunk(place), &header)) continue;
    uint32_t& number =
        header.purpose == Purpose::kRecords ? newest_[header.log].records : newest_[header.log].defs;
    if (header.chunk_no > number) number = header.chunk_no;
  }
  for (uint32_t gap = count / 2; gap > 0; gap /= 2) {  // shell sort
    for (uint32_t i = gap; i < count; ++i) {
      const Chunk chunk = chunks_[i];
      uint32_t at = i;
      for (; at >= gap && chunks_[at - gap].entry > chunk.entry; at -= gap) chunks_[at] = chunks_[at - gap];
      chunks_[at] = chunk;
    }
  }
  return count;
}

// The first definitions of a log hold its losses, which are counted on. A chunk that is newer than what was
// collected waits for the next time: the one before it may have been copied before it was full.
FileWriter::State FileWriter::state_of(const ProcessFile& file, uint32_t place) const {
  ChunkHeader header;
  if (!read_header(file.chunk(place), &header)) return State::kUnpublished;
  const Newest& newest = newest_[header.log];
  if (header.purpose != Purpose::kRecords) {
    if (header.chunk_no > newest.defs) return State::kUnpublished;
    if (header.chunk_no == newest.defs) return State::kGrows;
    return header.purpose == Purpose::kDefs && header.chunk_no == 0 ? State::kGrows : State::kPast;
  }
  if (header.chunk_no > newest.records) return State::kUnpublished;
  if (header.chunk_no == newest.records) return State::kGrows;
  return header.chunk_no < ThreadLog::window_begin(header.log) ? State::kPast : State::kFull;
}

// A log of a ring may begin anew in a chunk that is being copied.
bool FileWriter::copy(const ProcessFile& file, uint32_t place, unsigned char* to) {
  constexpr int kTries = 4;
  for (int tries = 0; tries < kTries; ++tries) {
    if (!segment::copy_published(file.chunk(place), to)) return false;
    if (!file.ring() || is_still(file.chunk(place), to)) return true;
  }
  return false;
}

bool FileWriter::write_at(ProcessFile& file, const void* bytes, size_t size, uint64_t offset) {
  const int fd = file.own_file().get();
  const int64_t began = clock_ns(CLOCK_MONOTONIC);
  // Stored before the write: an event that is dropped meanwhile asks how long it has been going on.
  since_ns_.store(began, std::memory_order_relaxed);
  const bool is_written = fd >= 0 && segment::write_at(fd, bytes, size, offset);
  note_time(clock_ns(CLOCK_MONOTONIC) - began, size);
  since_ns_.store(0, std::memory_order_relaxed);
  if (is_written) {
    if (offset + size > end_) end_ = offset + size;
    has_written_ = true;
    return true;
  }
  const int error = errno;
  // Half a chunk at the end would read as a damaged one.
  if (fd >= 0 && offset >= end_ &&
      ftruncate(fd, static_cast<off_t>(end_ == 0 ? format::kHeaderBytes : end_)) != 0)
    errno = error;
  note_error(file, error);
  return false;
}

FileWriter::Put FileWriter::put(ProcessFile& file, const Chunk& chunk, bool is_past) {
  Place& place = places_[chunk.place];
  // A place holds one chunk after the other: a sum of the one before proves nothing of this one.
  const bool is_known = place.entry == chunk.entry;
  // The file has nothing of it, so nothing has to be compared: it is written once, with its neighbours.
  if (is_past && !is_known) return add_to_batch(file, chunk);
  // What waits in the batch has lower numbers: it goes first, so that the file has no gap.
  if (!write_batch(file)) return Put::kFailed;
  unsigned char* const image = images_[0];
  if (!copy(file, chunk.place, image)) return Put::kNothing;
  const uint64_t sum = segment::image_sum(image);
  // A chunk that has not changed costs a copy and a sum, but no write.
  if (!is_known || place.sum != sum) {
    segment::seal(image);
    if (!write_at(file, image, format::kChunkBytes, format::chunk_offset(chunk.entry - 1)))
      return Put::kFailed;
    place = {sum, chunk.entry, is_past ? uint16_t{0} : entries_of(image), header_of(image).next == 0};
  }
  if (is_past) file.give_back(chunk.place);
  return Put::kDone;
}

FileWriter::Put FileWriter::add_to_batch(ProcessFile& file, const Chunk& chunk) {
  // Chunks that follow each other in the file go out in one write.
  const bool fits = batched_ == 0 || (batched_ < kBatch && chunk.entry == batch_[batched_ - 1].entry + 1);
  if (!fits && !write_batch(file)) return Put::kFailed;
  if (!copy(file, chunk.place, images_[batched_])) return Put::kNothing;
  segment::seal(images_[batched_]);
  batch_[batched_++] = chunk;
  return Put::kDone;
}

bool FileWriter::write_batch(ProcessFile& file) {
  const uint32_t size = batched_;
  batched_ = 0;
  if (size == 0) return true;
  if (!write_at(file, images_, size * sizeof images_[0], format::chunk_offset(batch_[0].entry - 1))) {
    unwritten_ = batch_[0].entry - 1;
    return false;
  }
  // Only now: what left the segment has to be in the file.
  for (uint32_t i = 0; i < size; ++i) file.give_back(batch_[i].place);
  return true;
}

// What the file has of a place that was given back since is no part of the ring any more.
bool FileWriter::clear(ProcessFile& file, uint32_t place) {
  static constexpr ChunkHeader kNone{};
  if (places_[place].entry == 0) return true;
  if (!write_at(file, &kNone, sizeof kNone, format::chunk_offset(place))) return false;
  places_[place] = {};
  return true;
}

bool FileWriter::write_place(ProcessFile& file, uint32_t place) {
  const uint32_t entry = file.entry(place);
  const bool is_there = entry != 0 && state_of(file, place) != State::kUnpublished;
  const Put put = is_there ? this->put(file, {entry, place}, false) : Put::kNothing;
  if (put == Put::kNothing) return clear(file, place);
  kept_ += put == Put::kDone;
  return put == Put::kDone;
}

// What the file lacks the end of comes first: when writing stops, only the newest chunk of a log may do so.
bool FileWriter::write_ring(ProcessFile& file) {
  collect(file);
  const uint32_t places = file.used_places();
  // All places, also those that were just written: `kept_` counts what the file holds.
  for (uint32_t place = 0; place < places; ++place) {
    if (places_[place].is_open && !write_place(file, place)) return false;
  }
  kept_ = 0;
  for (uint32_t place = 0; place < places; ++place) {
    if (!write_place(file, place)) return false;
  }
  return true;
}

void FileWriter::note_error(ProcessFile& file, int error) {
  // EFBIG is the limit of the process (ulimit -f), which to the job is a disk without room.
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  trouble_.store(1 + (is_full ? kLoss_disk_full : kLoss_file_lost), std::memory_order_relaxed);
  if (is_full) file.change_state(FileState::kOpen, FileState::kDiskFull);
}

void FileWriter::note_time(int64_t ns, size_t bytes) {
  const int64_t chunks = bytes < format::kChunkBytes ? 1 : static_cast<int64_t>(bytes / format::kChunkBytes);
  const int64_t mean = chunk_ns_.load(std::memory_order_relaxed);
  // A running mean, in which a large write counts for as many chunks as it has.
  chunk_ns_.store(mean + (ns / chunks - mean) * chunks / kChunksInMean, std::memory_order_relaxed);
}

void FileWriter::note_success(ProcessFile& file) {
  if (trouble_.exchange(0, std::memory_order_relaxed) != 0)
    file.change_state(FileState::kDiskFull, FileState::kOpen);
}

bool FileWriter::trouble(Loss* why) const {
  const uint32_t known = trouble_.load(std::memory_order_relaxed);
  if (known != 0) {
    *why = static_cast<Loss>(known - 1);
    return true;
  }
  const int64_t since = since_ns_.load(std::memory_order_relaxed);
  const bool is_stuck = since != 0 && clock_ns(CLOCK_MONOTONIC) - since >= kStuckNs;
  if (!is_stuck && chunk_ns_.load(std::memory_order_relaxed) < kSlowChunkNs) return false;
  *why = kLoss_storage_slow;
  return true;
}

bool FileWriter::write_header(ProcessFile& file, Depth depth, uint64_t began) {
  FileHeader& header = header_;
  copy_words(&header, file.header(), sizeof header);
  if (header.state == static_cast<uint32_t>(FileState::kBuilding)) return true;
  header.chunks_claimed = header.chunks_ready = file.ring() ? chunks_in_file() : whole_;
  if (depth >= Depth::kAll) sealed_ticks_ = began;
  header.sealed_ticks = sealed_ticks_;
  header.chunks_kept = depth == Depth::kLast ? kept_ : 0;
  // These words are a tool's, and writing them would undo its request.
  header.control = 0;
  memset(&header.request, 0, sizeof header.request);
  const bool is_last = depth == Depth::kLast;
  if (is_last && header.state == static_cast<uint32_t>(FileState::kOpen))
    header.state = static_cast<uint32_t>(FileState::kClosed);
  uint64_t sum = 1;
  for (size_t at = 0; at < sizeof header; at += sizeof sum) {
    uint64_t word;
    memcpy(&word, reinterpret_cast<const char*>(&header) + at, sizeof word);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15;
    sum ^= sum >> 29;
  }
  // Between two heartbeats an idle process leaves its file alone.
  if (sum == header_sum_ && !is_last) return true;
  const int fd = file.own_file().get();
  since_ns_.store(clock_ns(CLOCK_MONOTONIC), std::memory_order_relaxed);
  const bool is_written =
      fd >= 0 && (is_last ? segment::write_last_header(fd, header) : segment::write_header(fd, header));
  since_ns_.store(0, std::memory_order_relaxed);
  if (!is_written) {
    note_error(file, errno);
    return false;
  }
  header_sum_ = sum;
  return true;
}

bool FileWriter::write(ProcessFile& file, Depth depth) {
  const WithoutSizeSignal without;
  if (!prepare(file)) {
    note_error(file, EIO);
    return false;
  }
  // Read before anything is copied: the seals cover what was stored before, and may lack what was stored
  // after.
  const uint64_t began = read_ticks();
  if (depth == Depth::kHeader) return write_header(file, depth, began);
  has_written_ = false;
  const bool is_done = file.ring() ? write_ring(file) : write_stream(file, depth);
  // A full disk may still take what it has got already: all that was due has to be there.
  if (is_done && (has_written_ || depth == Depth::kLast)) note_success(file);
  if (depth == Depth::kPast && is_done) return true;
  const bool has_header = write_header(file, is_done || depth == Depth::kPast ? depth : Depth::kNew, began);
  return is_done && has_header;
}

bool FileWriter::write_stream(ProcessFile& file, Depth depth) {
  // Read before the places: a chunk that is claimed in between must not count as written.
  const uint32_t claimed = file.claimed();
  const uint32_t count = collect(file);
  uint32_t whole = has_claims_ ? whole_ : claimed;  // a number that no place gives yet may be any of them
  kept_ = claimed;
  unwritten_ = UINT32_MAX;
  bool is_done = true;
  for (uint32_t i = 0; i < count && is_done; ++i) {
    const Chunk& chunk = chunks_[i];
    const State state = state_of(file, chunk.place);
    const bool is_known = places_[chunk.place].entry == chunk.entry;
    const bool is_due =
        state == State::kPast || depth >= Depth::kAll ||
        (depth == Depth::kNew && (state == State::kGrows || !is_known || places_[chunk.place].is_open));
    Put put = state == State::kUnpublished ? Put::kNothing : Put::kDone;
    if (put == Put::kDone && is_due) put = this->put(file, chunk, state == State::kPast);
    is_done = put != Put::kFailed;
    kept_ -= put == Put::kNothing;
    if (put != Put::kDone && !is_known && chunk.entry - 1 < whole) whole = chunk.entry - 1;
  }
  if (!write_batch(file)) is_done = false;
  if (unwritten_ < whole) whole = unwritten_;
  if (depth != Depth::kPast && whole > whole_) whole_ = whole;
  return is_done;
}

void FileWriter::give_up(ProcessFile& file) {
  Loss why = kLoss_file_lost;
  trouble(&why);
  uint64_t lost = 0;
  for (uint32_t place = 0; places_ != nullptr && place < file.used_places(); ++place) {
    const uint32_t entry = file.entry(place);
    if (entry == 0 || entry == format::kPlaceClaimed || !segment::make_image(file.chunk(place), images_[0]))
      continue;
    if (reinterpret_cast<const ChunkHeader*>(images_[0])->purpose != Purpose::kRecords) continue;
    // What the file has of a chunk is not lost with the rest of it.
    lost += entries_of(images_[0]) - (places_[place].entry == entry ? places_[place].entries : 0);
  }
  __atomic_fetch_add(format::loss_counter(file.header(), why), lost, __ATOMIC_RELAXED);
  write_header(file, Depth::kNew, 0);
}

bool FileWriter::fetch_request(ProcessFile& file) {
  // One read for number and request. A copy that is torn all the same does not fit its check
  // (session/control.cc).
  constexpr size_t kFrom = offsetof(FileHeader, control), kTo = offsetof(FileHeader, in_force);
  alignas(8) char words[kTo - kFrom];
  const int fd = file.own_file().get();
  if (fd < 0 || pread(fd, words, sizeof words, kFrom) != static_cast<ssize_t>(sizeof words)) return false;
  FileHeader* header = file.header();
  uint32_t number;
  memcpy(&number, words, sizeof number);
  format::ControlRequest request;
  memcpy(&request, words + (offsetof(FileHeader, request) - kFrom), sizeof request);
  const bool is_new = number != __atomic_load_n(&header->control, __ATOMIC_RELAXED);
  // The same number with other words: the request was fetched half written, and is copied again.
  if (!is_new && memcmp(&header->request, &request, sizeof request) == 0) return false;
  auto* to = reinterpret_cast<uint64_t*>(&header->request);
  for (size_t i = 0; i < sizeof request / sizeof *to; ++i) {
    uint64_t word;
    memcpy(&word, reinterpret_cast<const char*>(&request) + i * sizeof word, sizeof word);
    __atomic_store_n(&to[i], word, __ATOMIC_RELAXED);
  }
  // Last, so that the keeper finds the request behind a number that it has not seen.
  __atomic_store_n(&header->control, number, __ATOMIC_RELEASE);
  return is_new;
}

}  // namespace lockstep::capture
