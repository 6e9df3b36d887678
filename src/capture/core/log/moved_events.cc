// SPDX-License-Identifier: Apache-2.0
// The host knows an event by the handle that it was given, and stops it on any thread, also after its record
// has moved. So the way from issued to present handle is kept for each open event, in a table that is small
// enough to scan. Ends that a record cannot show any more are one bit a unit: a list of them could grow
// without bound between two rounds of the ring.
#include "capture/core/log/moved_events.h"

#include <sys/mman.h>

#include "capture/core/session/session.h"

namespace lockstep::capture {

// A bit for each unit of a log's chunks. Its chunks have numbers in a row: by their remainder none shares its
// bits with another, as two of them may lie beside the ring.
namespace {
constexpr uint32_t kEndsOfWord = 64, kWordsOfChunk = format::kUnitsPerChunk / kEndsOfWord;

uint64_t chunks_with_ends() { return Session::get().file().cap_chunks() + 2; }
uint64_t* ends_of_chunk(uint64_t* ends, uint64_t chunk_no) {
  return ends + chunk_no % chunks_with_ends() * kWordsOfChunk;
}
uint64_t* word_of_end(uint64_t* ends, uint64_t position) {
  return ends_of_chunk(ends, position / format::kUnitsPerChunk) +
         position % format::kUnitsPerChunk / kEndsOfWord;
}
uint64_t bit_of_end(uint64_t position) { return uint64_t{1} << position % kEndsOfWord; }
}  // namespace

uint64_t MovedEvents::now(uint64_t handle) const {
  for (const Entry& event : entries_) {
    if (event.issued == handle) return event.now;
  }
  return 0;
}

bool MovedEvents::has(uint64_t handle) const {
  for (const Entry& event : entries_) {
    if (__atomic_load_n(&event.issued, __ATOMIC_RELAXED) == handle) return true;
  }
  return false;
}

void MovedEvents::note_end(uint64_t handle) {
  for (Entry& event : entries_) {
    if (__atomic_load_n(&event.issued, __ATOMIC_RELAXED) == handle)
      return __atomic_store_n(&event.ended, handle, __ATOMIC_RELAXED);
  }
  uint64_t* ends = __atomic_load_n(&ends_, __ATOMIC_ACQUIRE);
  if (ends == nullptr) {
    const size_t bytes = chunks_with_ends() * kWordsOfChunk * sizeof *ends;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    auto* made = static_cast<uint64_t*>(memory);
    if (__atomic_compare_exchange_n(&ends_, &ends, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      ends = made;
    } else {
      munmap(memory, bytes);  // another thread was faster
    }
  }
  const uint64_t position = format::handle_position(handle);
  __atomic_fetch_or(word_of_end(ends, position), bit_of_end(position), __ATOMIC_RELAXED);
}

bool MovedEvents::has_noted_end(uint64_t handle) const {
  for (const Entry& event : entries_) {
    if (event.issued != 0 && event.now == handle)
      return __atomic_load_n(&event.ended, __ATOMIC_RELAXED) == event.issued;
  }
  uint64_t* ends = __atomic_load_n(&ends_, __ATOMIC_ACQUIRE);
  if (ends == nullptr) return false;
  const uint64_t position = format::handle_position(handle);
  return (__atomic_load_n(word_of_end(ends, position), __ATOMIC_RELAXED) & bit_of_end(position)) != 0;
}

void MovedEvents::forget_ends(uint64_t chunk_no) {
  uint64_t* ends = __atomic_load_n(&ends_, __ATOMIC_ACQUIRE);
  if (ends == nullptr) return;
  uint64_t* words = ends_of_chunk(ends, chunk_no);
  for (uint32_t i = 0; i < kWordsOfChunk; ++i) __atomic_store_n(&words[i], uint64_t{0}, __ATOMIC_RELAXED);
}

void MovedEvents::forget_overwritten(const OpenEvents& open, uint64_t oldest_chunk_no) {
  for (Entry& event : entries_) {
    bool still = false;
    for (uint32_t i = 0; i < open.count; ++i) still |= open.events[i].handle == event.now;
    const uint64_t chunk_no = format::handle_position(event.now) / format::kUnitsPerChunk;
    if (!still && chunk_no < oldest_chunk_no) __atomic_store_n(&event.issued, uint64_t{0}, __ATOMIC_RELAXED);
  }
}

MovedEvents::Entry* MovedEvents::entry_for(uint64_t handle) {
  Entry* entry = nullptr;
  for (Entry& known : entries_) {
    if (known.issued != 0 && known.now == handle) entry = &known;
  }
  for (Entry& free : entries_) {
    if (entry == nullptr && free.issued == 0) entry = &free;
  }
  return entry;
}

}  // namespace lockstep::capture
