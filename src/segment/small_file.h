// SPDX-License-Identifier: Apache-2.0
// Files of /proc and /sys: short, read whole, once. For init, not for the event path.
#pragma once
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace lockstep::segment {

// Bytes read, at most `size`; 0 if there is no such file.
size_t read_small_file(const char* path, char* out, size_t size);

// As fstat(), which glibc before 2.33 has under another name.
inline int file_status(int fd, struct stat* status) {
  return static_cast<int>(syscall(SYS_fstat, fd, status));
}

}  // namespace lockstep::segment
