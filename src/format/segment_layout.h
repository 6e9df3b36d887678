// SPDX-License-Identifier: Apache-2.0
// The segment: memory in which a process keeps the chunks that are not, or not finally, in its file yet. It
// outlives the process and is gone when the file is whole (docs/decisions/0015). A file in kSegmentFolder:
//
//   0        4096     ...              + 4096       + 32768 each
//   +--------+--------+----------------+------------+---------+----
//   | header | table  | FileHeader     | place 0    | place 1 | ...
//   +--------+--------+----------------+------------+---------+----
//
// table[place] is 1 + the chunk's index in the file, 0 for none, kPlaceClaimed a moment before. It is stored
// before the chunk's header is filled in, and zeroed once the chunk is in the file for good and before the
// place is used again: who reads a place looks at the table before and after.
//
// Threads: threads of the process claim places by compare-and-swap and fill chunks; its writer gives
// places back, in a ring also the log that had one. Readers in other processes write nothing.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/file_layout.h"

namespace lockstep::format {

// As kMagic of a process file, but for one letter: a segment that was copied is not taken for a file.
inline constexpr unsigned char kSegmentMagic[8] = {0x89, 'L', 'K', 'M', '\r', '\n', 0x1a, '\n'};
inline constexpr uint32_t kSegmentVersion = 1;  // of another one nothing is read
inline constexpr char kSegmentFolder[] = "/dev/shm";
// Of its name: lockstep-<uid>-<pid>-<start>-<source>-<random>. Nobody parses the rest: what a segment is, its
// header says.
inline constexpr char kSegmentPrefix[] = "lockstep-";
// What the kernel calls one without a name, where kSegmentFolder has no room: FileHeader::segment_descriptor
// tells it.
inline constexpr char kNamelessSegment[] = "lockstep";
inline constexpr uint32_t kSegmentHeaderBytes = 4096;
// 32 GiB of chunks.
inline constexpr uint32_t kMostPlaces = 1 << 20;
inline constexpr uint32_t kPlaceClaimed = 0xffffffff;  // in the table: a chunk that has no number yet

// The process writes it once, `magic` last, and `closed` at its end. A file or a name of ours may be forged:
// an adopter takes only what belongs to its own user, and writes only to the file that key or inode prove.
// `places` is read from the file and bounded by kMostPlaces before anything is computed from it.
struct SegmentHeader {
  unsigned char magic[8];            // stored last
  uint32_t version;                  // kSegmentVersion
  uint32_t places;                   // chunks that fit
  uint64_t key;                      // FileHeader::segment_key of its file
  uint64_t file_device, file_inode;  // of its file
  uint32_t closed;                   // the process has ended in order; its file was not whole yet
  uint32_t reserved;
  char path[1400];  // of its file, absolute
};
static_assert(sizeof(SegmentHeader) <= kSegmentHeaderBytes);

// Sizes and offsets in bytes; `places` is at most kMostPlaces, so that no sum overflows. Rounded up to pages.
constexpr uint64_t segment_table_bytes(uint32_t places) {
  return (uint64_t{places} * sizeof(uint32_t) + 4095) / 4096 * 4096;
}
// Of the FileHeader; the places follow it as chunks follow the header of a file.
constexpr uint64_t segment_file_offset(uint32_t places) {
  return kSegmentHeaderBytes + segment_table_bytes(places);
}
constexpr uint64_t segment_bytes(uint32_t places) {
  return segment_file_offset(places) + chunk_offset(places);
}

}  // namespace lockstep::format
