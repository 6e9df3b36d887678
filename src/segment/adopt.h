// SPDX-License-Identifier: Apache-2.0
// Finishes the files of processes that ended before their file was whole: writes what their segment holds
// into the file and removes the segment. libc only. It may be killed anywhere: another adopter begins again.
//
// Any number of adopters may run at once, in any processes: a lock on the segment lets one through, and the
// others answer kLives. Within a process any thread may call; the event path never does, since files are
// written here. Names, sizes and contents of segments are hostile: others may make files of that name in a
// folder for all.
#pragma once
#include <cstdint>

namespace lockstep::segment {

// How an attempt ended. Only kDone is final; after the others somebody may try again later.
enum class Adoption : uint8_t {
  kLives,    // its process may still write, or another adopter is at it; nothing was done
  kDone,     // the file is whole and the segment removed
  kRefused,  // it is none of ours, or of another version
  kFailed,   // the file could not be written: the segment is left as it is
};

// A name that a segment can have, without a folder.
bool is_segment_name(const char* name);
// The segment of this name in format::kSegmentFolder. Its file may have been moved to `file` since; nullptr:
// it has not.
Adoption adopt(const char* name, const char* file = nullptr);

// A segment without a name, open for reading and writing with an offset and locks that nobody shares; the
// file that it is of.
Adoption adopt_open(int segment, const char* file);

// Segments by how their adoption ended; those of living processes and of others are not counted.
struct Adoptions {
  uint32_t done = 0, failed = 0;
};
// All segments of this user whose processes have gone; looks at `most` of them.
Adoptions adopt_all(uint32_t most);

}  // namespace lockstep::segment
