// SPDX-License-Identifier: Apache-2.0
#include "capture/core/sealer.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/core/clock.h"
#include "capture/core/thread_log.h"
#include "segment/chunk_image.h"

namespace lockstep::capture {
namespace {

using format::ChunkHeader;
using format::Purpose;

// What other threads store meanwhile is either behind the last tag that is seen here, in a late field, whose checksum says
// that it was filled in since, or in a chunk that is being recycled, whose number then no longer fits. So what reads chunks
// here races by design.
#define LOCKSTEP_READS_BESIDE_WRITERS __attribute__((no_sanitize("thread")))

}  // namespace

LOCKSTEP_READS_BESIDE_WRITERS void Sealer::find_newest(const ProcessFile& file, uint32_t chunks) {
  memset(newest_, 0, sizeof newest_);
  for (uint32_t index = 0; index < chunks; ++index) {
    const auto* header = reinterpret_cast<const ChunkHeader*>(file.chunk(index));
    if (sealed_ != nullptr && sealed_[index] != 0 && !file.ring()) continue;
    if (__atomic_load_n(&header->magic, __ATOMIC_ACQUIRE) != format::kChunkMagic) continue;
    if (header->log > format::kMaxLogs) continue;
    Newest& newest = newest_[header->log];
    uint32_t& number = header->purpose == Purpose::kRecords ? newest.records : newest.defs;
    if (header->chunk_no > number) number = header->chunk_no;
  }
}

// Its log has left it behind, and nothing is filled in there any more.
bool Sealer::is_past(const ChunkHeader& header) const {
  const Newest& newest = newest_[header.log];
  return header.purpose == Purpose::kRecords ? newest.records > header.chunk_no + ThreadLog::kWindow
                                             : newest.defs > header.chunk_no;
}

LOCKSTEP_READS_BESIDE_WRITERS void Sealer::seal(char* chunk, uint32_t index) {
  if (!segment::copy_published(chunk, copy_)) return;
  const auto* copied = reinterpret_cast<const ChunkHeader*>(copy_);
  if (copied->log > format::kMaxLogs) return;
  const format::ChunkSeal seal = format::make_seal(copy_);
  auto* header = reinterpret_cast<ChunkHeader*>(chunk);
  const bool is_same = memcmp(&copied->seal, &seal, sizeof seal) == 0;
  if (!is_same) {
    __atomic_store_n(&header->seal.units, uint16_t{0}, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    header->seal.chunk_no = seal.chunk_no;
    header->seal.header = seal.header;
    header->seal.entries = seal.entries;
    memcpy(header->seal.blocks, seal.blocks, sizeof seal.blocks);
    header->seal.late = seal.late;
    __atomic_store_n(&header->seal.units, seal.units, __ATOMIC_RELEASE);
  }
  if (sealed_ != nullptr && is_past(*copied)) sealed_[index] = seal.chunk_no + 1;
}

LOCKSTEP_READS_BESIDE_WRITERS void Sealer::seal_all(ProcessFile& file) {
  const uint32_t chunks = file.claimed_in_file();
  const uint64_t began = read_ticks();
  if (sealed_ == nullptr) {
    void* memory = mmap(nullptr, uint64_t{file.max_chunks()} * sizeof *sealed_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) sealed_ = static_cast<uint32_t*>(memory);
  }
  find_newest(file, chunks);
  for (uint32_t index = 0; index < chunks; ++index) {
    char* chunk = file.chunk(index);
    if (sealed_ != nullptr && sealed_[index] != 0 &&
        (!file.ring() || sealed_[index] == reinterpret_cast<const ChunkHeader*>(chunk)->chunk_no + 1))
      continue;
    seal(chunk, index);
  }
  if (chunks != 0) __atomic_store_n(&file.header()->sealed_ticks, began, __ATOMIC_RELEASE);
}

}  // namespace lockstep::capture
