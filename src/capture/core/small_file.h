// SPDX-License-Identifier: Apache-2.0
// Files of /proc and /sys: short, read whole, once. For init, not for the event path.
#pragma once
#include <cstddef>

namespace lockstep::capture {

// Bytes read, at most `size`; 0 if there is no such file.
size_t read_small_file(const char* path, char* out, size_t size);

}  // namespace lockstep::capture
