// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the live view as a process file that somebody is writing: a first look, then a look at what is
// new.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "readers/native/live_tail.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int fd = memfd_create("fuzz", 0);
  size_t first = size / 2;
  if (fd < 0 || write(fd, data, first) != static_cast<ssize_t>(first)) std::abort();
  auto tail = lockstep::readers::native::LiveTail::open("/proc/self/fd/" + std::to_string(fd));
  if (write(fd, data + first, size - first) != static_cast<ssize_t>(size - first)) std::abort();
  if (tail && (*tail)->refresh()) (void)(*tail)->refresh();
  close(fd);
  return 0;
}
