// SPDX-License-Identifier: Apache-2.0
// The process files of a run directory by their headers alone: who left one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/launch/process_info.h"

namespace lockstep::cli::launch {

struct ProcessFile {
  std::string path;
  ProcessIdentity process;
  int64_t rank = -1, world = -1;
  uint64_t bytes = 0;  // size of the file
  bool open = false;   // not closed by its process, which may still write to it
  bool valid = false;  // the header is one of ours; else only host, pid and start are known, from the name
};
// Every *.lks in the directory, by name.
std::vector<ProcessFile> process_files(const std::string& run);

}  // namespace lockstep::cli::launch
