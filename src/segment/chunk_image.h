// SPDX-License-Identifier: Apache-2.0
// A chunk as it goes into a file: a copy of what is published of it, with its seal (format/seal.h), zeros
// behind. libc only; the chunk may be written to by others meanwhile.
#pragma once
#include <cstdint>

#include "format/file_layout.h"

namespace lockstep::segment {

// Whether the chunk has its header, and so all that was stored before. ThreadSanitizer sees it, though what
// is copied then is read beside writers: that a newer chunk of a log is published is why an older one may be
// given back.
inline bool is_published(const char* chunk) {
  return __atomic_load_n(&reinterpret_cast<const format::ChunkHeader*>(chunk)->magic, __ATOMIC_ACQUIRE) ==
         format::kChunkMagic;
}
// What is published of the chunk, without a new seal. `copy` has kChunkBytes and is zero behind it from the
// first unit on that is not published. Statistics are copied as they are. False if nothing is published yet.
bool copy_published(const char* chunk, unsigned char* copy);
// Gives a copy its seal; one of statistics stays without.
void seal(unsigned char* copy);
// copy_published(), then seal(). False if nothing is published yet; then there is no image.
bool make_image(const char* chunk, unsigned char* image);
// A sum of kChunkBytes by which a writer sees that a copy differs from the one before; never 0. It guards
// against nothing: two different copies may have one sum, and then the next change brings the chunk into the
// file.
uint64_t image_sum(const unsigned char* copy);

}  // namespace lockstep::segment
