// SPDX-License-Identifier: Apache-2.0
// Whether the process that a file or a segment belongs to has gone, as far as this host can tell. libc only.
#pragma once
#include "format/file_layout.h"

namespace lockstep::segment {

// Whether no process has the header's pid and start time any more, or it has ended and waits for its parent.
// False where that cannot be known: a process of another pid namespace or boot. Makes system calls; any
// thread.
bool has_gone(const format::FileHeader& header);

}  // namespace lockstep::segment
