// SPDX-License-Identifier: Apache-2.0
// The counters of this process: the sums over all process files that its capture libraries have open. They
// are found among the process's open descriptors, again and again, as the libraries may be loaded later than
// Score-P. A look costs some small reads, and is not taken more often than every 10 ms, nor for more than a
// tenth of the time; the list of descriptors is read every second until a file is there, then every 10 s.
// libc only; one thread at a time.
#pragma once
#include <cstdint>

#include "capture/scorep/file_counters.h"

namespace lockstep::capture::scorep {

class ProcessCounters {
 public:
  // Looks again if it is time. The number of looks so far that found a file; 0 none.
  uint64_t look();
  const Totals& totals() const { return totals_; }
  void close();

 private:
  struct Known {
    char path[1400];
    FileCounters* counters;  // nullptr: not ours, or not readable
  };
  static constexpr uint32_t kMostFiles = 8;  // capture libraries of one process, and files of before a fork
  uint64_t look_now(int64_t now);
  void find_files();
  void add_file(const char* path);

  Known files_[kMostFiles] = {};
  uint32_t files_size_ = 0, counted_ = 0;
  int64_t next_look_ns_ = 0, next_search_ns_ = 0;
  uint64_t looks_ = 0;
  Totals totals_;
};

}  // namespace lockstep::capture::scorep
