// SPDX-License-Identifier: Apache-2.0
// The process files of a run directory by their headers alone: who left one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "run/process_info.h"

namespace lockstep::run {

struct ProcessFile {
  std::string path;
  ProcessIdentity process;
  int64_t rank = -1, world = -1;
  int64_t start_ns =
      0;  // of the process, as its capture library worked it out; ns since the Unix epoch, 0 unknown
  uint64_t bytes = 0;               // size of the file
  bool is_building = false;         // its process is just starting, or ended then
  uint32_t segment_descriptor = 0;  // of one without a name, in its process
  uint64_t segment_key = 0;
  std::string segment;  // of a process whose file is not whole yet (format/segment_layout.h); empty: none
  bool is_hsa = false;  // of the library that AMD's runtime loads
  bool open = false;    // not closed by its process, which may still write to it
  bool valid = false;   // the header is one of ours; else only host, pid and start are known, from the name
};
// One file by its header and name.
ProcessFile process_file(const std::string& path);
// Every *.lks in the directory, by name.
std::vector<ProcessFile> process_files(const std::string& run);
// Folders in the directory, by name.
std::vector<std::string> folders_in(const std::string& directory);
// All that readers take of a path: those of a directory and of the folders in it, or the file itself.
std::vector<ProcessFile> process_files_at(const std::string& path);

}  // namespace lockstep::run
