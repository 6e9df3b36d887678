// SPDX-License-Identifier: Apache-2.0
#include "segment/process_stat.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "segment/small_file.h"

namespace lockstep::segment {

bool read_process_stat(const char* path, ProcessStat* stat) {
  char text[1024];
  text[read_small_file(path, text, sizeof text - 1)] = 0;
  // "pid (name) state parent ...": the name may hold anything. Threads are the 20th field, the start the
  // 22nd.
  const char* at = strrchr(text, ')');
  if (at == nullptr || at[1] != ' ') return false;
  stat->state = at[2];
  for (int field = 3; field <= 22; ++field) {
    at = strchr(at + 1, ' ');
    if (at == nullptr) return false;
    if (field == 4) stat->parent = strtoll(at + 1, nullptr, 10);
    if (field == 20) stat->threads = strtoull(at + 1, nullptr, 10);
    if (field == 22) stat->start_ticks = strtoull(at + 1, nullptr, 10);
  }
  return true;
}

void read_boot_id(unsigned char (&boot_id)[16]) {
  memset(boot_id, 0, sizeof boot_id);
  char text[64];
  const size_t length = read_small_file("/proc/sys/kernel/random/boot_id", text, sizeof text);
  size_t digits = 0;
  for (size_t i = 0; i < length && digits < 32; ++i) {
    const char c = text[i];
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) continue;
    boot_id[digits / 2] =
        static_cast<unsigned char>(digits % 2 == 0 ? value << 4 : boot_id[digits / 2] | value);
    ++digits;
  }
}

uint32_t own_pid_namespace() {
  char link[64] = {};  // "pid:[4026531836]"
  if (readlink("/proc/self/ns/pid", link, sizeof link - 1) <= 5) return 0;
  return static_cast<uint32_t>(strtoul(link + 5, nullptr, 10));
}

}  // namespace lockstep::segment
