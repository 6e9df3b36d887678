// SPDX-License-Identifier: Apache-2.0
// Which NCCL or RCCL the process uses: the file that the loader mapped, its GNU build id and its version, and
// whether others of the same name are mapped too. Nothing is loaded for it. For init, not for the event path.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace lockstep::capture::nccl {

// As a note keeps it: "BUILDID VERSION PATH", "-" for a build id that is not there, 0 for a version that
// cannot be asked. Of a path that is too long the end is kept, behind "...".
inline constexpr size_t kLibraryTextBytes = 192;

struct NcclLibrary {
  char text[kLibraryTextBytes];
  uint32_t version;  // as ncclGetVersion gives it; 0 unknown
};

// The object that holds this address of NCCL's code; nullptr: the only one that is called as NCCL's library
// is. False: none.
bool find_nccl_library(const void* code, NcclLibrary* out);

// Writes down, once for the process, which one is in use and which others are mapped.
void note_nccl_libraries(const void* code);

// ncclGetVersion's number of the one that holds the address, else of one that is loaded; 0 if none can be
// asked.
uint32_t read_nccl_version(const void* code);

}  // namespace lockstep::capture::nccl
