// SPDX-License-Identifier: Apache-2.0
#include "segment/chunk_image.h"

#include <string.h>

#include "format/seal.h"

namespace lockstep::segment {
namespace {

using format::ChunkHeader;
using format::Purpose;

// What other threads store meanwhile is either behind the last tag that is seen here, in a late field, whose
// checksum says that it was filled in since, or in a chunk that is being recycled, whose number then no
// longer fits. So what reads chunks here races by design. Each entry is copied after its tag was loaded, and
// with that tag: a copy never has a stop without the late fields that were stored before it.
#define LOCKSTEP_READS_BESIDE_WRITERS __attribute__((no_sanitize("thread")))

LOCKSTEP_READS_BESIDE_WRITERS void copy_units(unsigned char* to, const char* from, uint32_t first,
                                              uint32_t units) {
  const auto* words = reinterpret_cast<const uint64_t*>(from + size_t{first} * format::kUnitBytes);
  auto* out = reinterpret_cast<uint64_t*>(to + size_t{first} * format::kUnitBytes);
  for (uint32_t i = 0; i < 2 * units; ++i) out[i] = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
}

// Copies an entry if its tag is there, and with it all that was stored before. Its size in units; else 0.
LOCKSTEP_READS_BESIDE_WRITERS uint32_t copy_entry(const char* chunk, unsigned char* copy, Purpose purpose,
                                                  uint32_t unit) {
  constexpr size_t kTag = offsetof(format::RecordHead, stop_after);
  unsigned char head[format::kUnitBytes] = {};
  const size_t at = size_t{unit} * format::kUnitBytes;
  // Read once and with acquire: it says whether the rest is there.
  const uint64_t word =
      __atomic_load_n(reinterpret_cast<const uint64_t*>(chunk + at + kTag), __ATOMIC_ACQUIRE);
  memcpy(head + kTag, &word, sizeof word);
  const uint32_t units = word >> 32 == 0 ? 0 : format::units_of_head(head, purpose);
  if (units == 0 || unit + units > format::kLastUnit) return 0;
  copy_units(copy, chunk, unit, units);
  memcpy(copy + at + kTag, &word, sizeof word);
  return units;
}

}  // namespace

LOCKSTEP_READS_BESIDE_WRITERS bool copy_published(const char* chunk, unsigned char* copy) {
  if (!is_published(chunk)) return false;
  copy_units(copy, chunk, 0, format::kChunkHeaderUnits);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);  // a header that names its successor comes with all its entries
  const Purpose purpose = reinterpret_cast<const ChunkHeader*>(copy)->purpose;
  if (purpose == Purpose::kHistogram) {
    copy_units(copy, chunk, format::kChunkHeaderUnits, format::kUnitsPerChunk - format::kChunkHeaderUnits);
    return true;
  }
  if (!format::has_seal(purpose)) return false;
  uint32_t unit = format::kChunkHeaderUnits;
  for (uint32_t units; unit < format::kLastUnit; unit += units) {
    units = copy_entry(chunk, copy, purpose, unit);
    if (units == 0) break;
  }
  const size_t used = size_t{unit} * format::kUnitBytes;
  memset(copy + used, 0, format::kChunkBytes - used);
  return true;
}

void seal(unsigned char* copy) {
  if (!format::has_seal(reinterpret_cast<const ChunkHeader*>(copy)->purpose)) return;
  const format::ChunkSeal seal = format::make_seal(copy);
  memcpy(copy + offsetof(ChunkHeader, seal), &seal, sizeof seal);
}

bool make_image(const char* chunk, unsigned char* image) {
  if (!copy_published(chunk, image)) return false;
  seal(image);
  return true;
}

uint64_t image_sum(const unsigned char* copy) {
  // Four sums side by side, none of which waits for another: this runs over every chunk each time.
  uint64_t sums[4] = {1, 2, 3, 4};
  for (uint32_t at = 0; at < format::kChunkBytes; at += sizeof sums) {
    uint64_t words[4];
    memcpy(words, copy + at, sizeof words);
    for (int i = 0; i < 4; ++i) sums[i] = (sums[i] ^ words[i]) * 0x9e3779b97f4a7c15 ^ sums[i] >> 29;
  }
  return (sums[0] ^ sums[1] << 1 ^ sums[2] << 2 ^ sums[3] << 3) | 1;
}

}  // namespace lockstep::segment
