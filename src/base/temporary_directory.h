// SPDX-License-Identifier: Apache-2.0
// Room on the disk for what does not fit into memory or has to be a file, for as long as the program runs.
#pragma once
#include <string>

#include "base/result.h"

namespace lockstep {

// TMPDIR, else /var/tmp: on many machines /tmp is memory.
std::string temporary_folder();

// A directory that nobody else can read, with all that is in it: gone with the object. What a killed program
// left behind is removed by the next one of the same user that makes such a directory.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> make();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();

  const std::string& path() const { return path_; }

 private:
  TemporaryDirectory() = default;
  int lock_ = -1;  // the directory itself; whoever holds its lock uses it
  std::string path_;
};

}  // namespace lockstep
