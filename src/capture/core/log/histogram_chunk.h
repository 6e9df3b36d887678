// SPDX-License-Identifier: Apache-2.0
// The chunk of a log's histogram cells (ring retention): a hash table with a fixed number of probes. Owner
// thread only; all zero is a log without one.
#pragma once
#include <cstring>

#include "capture/core/log/chunk.h"
#include "format/definitions.h"

namespace lockstep::capture {

class HistogramChunk {
 public:
  void begin(uint32_t index, LogOwner owner) {
    if (index == kNoChunk) return;
    char* chunk = Session::get().file().chunk(index);
    memset(chunk + sizeof(format::ChunkHeader), 0, format::kChunkBytes - sizeof(format::ChunkHeader));
    chunk_ = open_chunk(index, format::Purpose::kHistogram, 0, owner);
  }
  // The cell of a key, which may be new; nullptr when there is no room.
  format::HistogramCell* cell(uint64_t key, uint32_t shape_log, uint64_t ticks) {
    if (__builtin_expect(chunk_ == nullptr, 0)) return nullptr;
    auto* cells = reinterpret_cast<format::HistogramCell*>(chunk_ + sizeof(format::ChunkHeader));
    uint32_t at = static_cast<uint32_t>((key * 0x9e3779b97f4a7c15) >> 32) % format::kHistogramCells;
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      format::HistogramCell* cell = &cells[(at + probe) % format::kHistogramCells];
      if (cell->key == key && cell->shape_log == shape_log) return cell;
      if (cell->key == 0) {
        cell->first_ticks = ticks;
        cell->shape_log = shape_log;
        __atomic_store_n(&cell->key, key, __ATOMIC_RELEASE);
        return cell;
      }
    }
    return nullptr;
  }

 private:
  static constexpr uint32_t kProbes = 16;
  char* chunk_;
};

}  // namespace lockstep::capture
