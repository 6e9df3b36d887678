// SPDX-License-Identifier: Apache-2.0
// What the kernel of this host says of processes, and of itself. libc only.
#pragma once
#include <cstdint>

namespace lockstep::segment {

// Fields of /proc/PID/stat by which a process is recognised.
struct ProcessStat {
  char state = 0;
  int64_t parent = 0;
  uint64_t threads = 0;
  uint64_t start_ticks = 0;  // of the clock that sysconf(_SC_CLK_TCK) gives, since boot

  // A main thread that has ended is a zombie while others of its process go on.
  bool has_ended() const { return state == 'X' || (state == 'Z' && threads <= 1); }
};

// False if there is no such file, or it is none.
bool read_process_stat(const char* path, ProcessStat* stat);

// The boot's id in binary, as FileHeader::boot_id; all zero if it is not known.
void read_boot_id(unsigned char (&boot_id)[16]);
// Of this process; 0 if it is not known.
uint32_t own_pid_namespace();

}  // namespace lockstep::segment
