// SPDX-License-Identifier: Apache-2.0
// A file read by position. Unlike a mapping it survives the file being cut short or rewritten while it is
// read, so it suits files that another process still writes: a read returns what was there. Reads may come
// from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace lockstep {

class InputFile {
 public:
  // Opens a regular file for reading. Errors: kNotFound, kPermission, kIo, and kInvalidInput for what is no
  // regular file; a FIFO does not block.
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  // Bytes read from `offset` on; fewer than asked at the end of the file or on a read error.
  size_t read_at(uint64_t offset, std::span<std::byte> out) const;
  // First offset at or behind `offset` that is not in a hole; size() if there is none.
  uint64_t next_data(uint64_t offset) const;
  uint64_t size() const { return size_; }  // when it was opened
  // Equal for two names of one file.
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }
  uint32_t owner() const { return owner_; }  // user id
  const std::string& path() const { return path_; }

 private:
  InputFile() = default;
  int fd_ = -1;
  uint64_t size_ = 0, device_ = 0, inode_ = 0;
  uint32_t owner_ = 0;
  std::string path_;
};

}  // namespace lockstep
