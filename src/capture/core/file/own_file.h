// SPDX-License-Identifier: Apache-2.0
// A file that this library made, by descriptor: hosts close descriptors they do not know, and the number may
// then stand for a file of theirs. So it is looked at before each use, and opened again by its path if it has
// gone. Any thread.
#pragma once
#include <atomic>
#include <cstdint>

namespace lockstep::capture {

class OwnFile {
 public:
  // Takes a descriptor that was just opened; the path is absolute, or empty for a file without a name.
  void take(int fd, const char* path);
  // -1, with errno, if it has gone and cannot be opened again.
  int get();
  // Closes the descriptor if it still is ours.
  void close();
  const char* path() const { return path_; }
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }

 private:
  bool is_ours(int fd) const;

  std::atomic<int> fd_{-1};
  uint64_t device_ = 0, inode_ = 0;
  char path_[1400] = {};
};

}  // namespace lockstep::capture
