// SPDX-License-Identifier: Apache-2.0
// Whether the process that a file or a segment belongs to has gone, as far as this host can tell. libc only.
#pragma once
#include "format/file_layout.h"

namespace lockstep::segment {

// False also where it cannot be told: a process of another pid namespace or boot.
bool has_gone(const format::FileHeader& header);

}  // namespace lockstep::segment
