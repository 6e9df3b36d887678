// SPDX-License-Identifier: Apache-2.0
// How a chunk of a log is put to use. Its header is published last: until then it belongs to nobody.
#pragma once
#include <cstddef>
#include <cstdint>

#include "capture/core/clock.h"
#include "capture/core/session/session.h"
#include "format/records.h"

namespace lockstep::capture {

// Whose chunk it is: the log's number, and its thread for now.
struct LogOwner {
  uint32_t log, tid;
};

// Who follows the link has every entry of the chunk before it: it is stored after them.
inline void name_next(char* chunk, uint32_t next) {
  __atomic_store_n(&reinterpret_cast<format::ChunkHeader*>(chunk)->next, Session::get().file().number(next),
                   __ATOMIC_RELEASE);
}

// In a ring the chunk may be copied meanwhile. So what it held goes before its old number does: who sees the
// new one sees nothing of the old entries. Its thread alone writes to it from here on; the chunk's number in
// the file is the place's, not `chunk_no`.
inline char* open_chunk(uint32_t index, format::Purpose purpose, uint32_t chunk_no, LogOwner owner) {
  char* chunk = Session::get().file().chunk(index);
  auto* header = reinterpret_cast<format::ChunkHeader*>(chunk);
  auto* first = reinterpret_cast<uint64_t*>(chunk + sizeof(format::ChunkHeader) +
                                            offsetof(format::RecordHead, stop_after));
  __atomic_store_n(&header->magic, 0u, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  __atomic_store_n(first, uint64_t{0}, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  header->purpose = purpose;
  header->log = static_cast<uint16_t>(owner.log);
  header->chunk_no = chunk_no;
  header->next = 0;
  header->records = 0;
  header->claimed_ticks = read_ticks();
  header->tid = owner.tid;
  __atomic_store_n(&header->magic, format::kChunkMagic, __ATOMIC_RELEASE);
  return chunk;
}

}  // namespace lockstep::capture
