// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the live view as a process file that somebody is writing: a first look, then a
// look at what is new; once for what is now, once for all there was.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "readers/native/tail/live_tail.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Tail = lockstep::readers::native::LiveTail;
  int fd = memfd_create("fuzz", 0);
  size_t first = size / 2;
  if (fd < 0 || write(fd, data, first) != static_cast<ssize_t>(first)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  auto now = Tail::open(path);
  auto all = Tail::open(path, Tail::Depth::kAll);
  if (write(fd, data + first, size - first) != static_cast<ssize_t>(size - first)) std::abort();
  for (auto* tail : {&now, &all}) {
    if (*tail && (**tail)->refresh()) (void)(**tail)->refresh();
  }
  close(fd);
  return 0;
}
