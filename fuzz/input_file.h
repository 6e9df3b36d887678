// SPDX-License-Identifier: Apache-2.0
// The bytes of a fuzzer's input as a file with a name: SQLite opens none that has no directory entry.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/temporary_directory.h"

namespace lockstep::fuzz {

// The same path at each call, in a directory that goes with the program.
inline std::string input_file(const uint8_t* data, size_t size) {
  static const Result<TemporaryDirectory> folder = TemporaryDirectory::make();
  if (!folder) std::abort();
  std::string path = folder->path() + "/input";
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) std::abort();
  return path;
}

}  // namespace lockstep::fuzz
