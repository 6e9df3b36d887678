// SPDX-License-Identifier: Apache-2.0
#include "segment/dead_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace lockstep::segment {
namespace {

size_t read_text(const char* path, char* out, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = read(fd, out, size - 1);
  close(fd);
  out[got > 0 ? got : 0] = 0;
  return got > 0 ? static_cast<size_t>(got) : 0;
}

bool is_own_namespace(uint32_t wanted) {
  char link[64] = {};
  if (wanted == 0 || readlink("/proc/self/ns/pid", link, sizeof link - 1) <= 0) return false;
  const char* number = strchr(link, '[');
  return number != nullptr && strtoul(number + 1, nullptr, 10) == wanted;
}

bool is_own_boot(const unsigned char (&boot)[16]) {
  char text[64];
  if (read_text("/proc/sys/kernel/random/boot_id", text, sizeof text) == 0) return false;
  size_t digit = 0;
  for (const char* c = text; *c != 0 && digit < 32; ++c) {
    const int value = *c >= '0' && *c <= '9' ? *c - '0' : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10 : -1;
    if (value < 0) continue;
    if ((digit % 2 == 0 ? boot[digit / 2] >> 4 : boot[digit / 2] & 15) != value) return false;
    ++digit;
  }
  return digit == 32;
}

}  // namespace

bool has_gone(const format::FileHeader& header) {
  if (!is_own_boot(header.boot_id) || !is_own_namespace(header.pid_namespace)) return false;
  if (kill(header.pid, 0) != 0 && errno == ESRCH) return true;
  char path[48], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", header.pid);
  if (read_text(path, text, sizeof text) == 0) return false;
  // "pid (name) state ...": the name may hold anything. Threads are the 20th field, the start the 22nd.
  const char* at = strrchr(text, ')');
  if (at == nullptr || at[1] != ' ') return false;
  const char state = at[2];
  unsigned long threads = 0;
  unsigned long long start = 0;
  int field = 3;
  for (at += 2; *at != 0 && field < 22; ++at) {
    if (*at != ' ') continue;
    ++field;
    if (field == 20) threads = strtoul(at + 1, nullptr, 10);
    if (field == 22) start = strtoull(at + 1, nullptr, 10);
  }
  if (field < 22) return false;
  return start != header.start_ticks || state == 'X' || (state == 'Z' && threads <= 1);
}

}  // namespace lockstep::segment
