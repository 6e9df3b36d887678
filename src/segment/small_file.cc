// SPDX-License-Identifier: Apache-2.0
#include "segment/small_file.h"

#include <fcntl.h>
#include <unistd.h>

namespace lockstep::segment {

size_t read_small_file(const char* path, char* out, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t used = 0;
  while (used < size) {
    ssize_t got = read(fd, out + used, size - used);
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  close(fd);
  return used;
}

}  // namespace lockstep::segment
