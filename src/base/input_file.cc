// SPDX-License-Identifier: Apache-2.0
// Files may be hostile, and may grow or be cut while they are read. pread() keeps no position, so any thread
// may read at any place.
#include "base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace lockstep {

Result<InputFile> InputFile::open(const std::string& path) {
  // O_NONBLOCK: a FIFO given as a path must not hang the tool; it is refused below.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    ErrorCode code = errno == ENOENT   ? ErrorCode::kNotFound
                     : errno == EACCES ? ErrorCode::kPermission
                                       : ErrorCode::kIo;
    return Error{code, std::string("cannot open: ") + std::strerror(errno), path};
  }
  InputFile file;
  file.fd_ = fd;
  file.path_ = path;
  // Of the descriptor, not of the path: the path may name another file by now.
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    return Error{ErrorCode::kInvalidInput, "not a regular file", path};
  file.size_ = static_cast<uint64_t>(st.st_size);
  file.device_ = st.st_dev;
  file.inode_ = st.st_ino;
  file.owner_ = st.st_uid;
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      device_(other.device_),
      inode_(other.inode_),
      owner_(other.owner_),
      path_(std::move(other.path_)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  std::swap(owner_, other.owner_);
  std::swap(path_, other.path_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

size_t InputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    ssize_t n = ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

uint64_t InputFile::next_data(uint64_t offset) const {
  if (offset >= size_) return size_;
  off_t at = ::lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
  if (at < 0) return errno == ENXIO ? size_ : offset;  // ENXIO: a hole to the end; else not supported here
  return static_cast<uint64_t>(at);
}

}  // namespace lockstep
