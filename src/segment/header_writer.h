// SPDX-License-Identifier: Apache-2.0
// Writes a process file's bytes at their place. libc only. A file system may let these wait as long as it
// likes.
//
// Any thread; one writer for each file, but for the words of a tool, which are left out here.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/file_layout.h"

namespace lockstep::segment {

// False, with errno, if not all could be written.
bool write_at(int file, const void* bytes, size_t size, uint64_t offset);
// All of the header, which the file has room for, but for the words that a tool writes (control, request),
// the state last.
bool write_header(int file, const format::FileHeader& header);
// The same when nothing follows: it then names no segment any more.
bool write_last_header(int file, const format::FileHeader& header);

}  // namespace lockstep::segment
