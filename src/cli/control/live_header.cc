// SPDX-License-Identifier: Apache-2.0
// Maps the header of a file that a live process writes. Every word is hostile and may change between two
// looks, so each is loaded by itself. The lock keeps tools from writing over each other's requests; the
// process never takes it.
#include "cli/control/live_header.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/partial_path.h"
#include "format/control_copy.h"

namespace lockstep::cli::control {
namespace {

using format::ControlRequest;
using format::ControlState;

// Another tool holds it for a moment only; one that was stopped must not stop this one.
bool lock(int fd) {
  for (int tries = 0; tries < 100; ++tries) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    usleep(10000);
  }
  errno = EWOULDBLOCK;
  return false;
}

}  // namespace

Result<std::unique_ptr<LiveHeader>> LiveHeader::open(const std::string& path, Access access) {
  const bool steers = access == Access::kSteer;
  int fd = ::open(path.c_str(), (steers ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return system_error("cannot be opened", path, errno);
  struct stat file {};
  void* memory = MAP_FAILED;
  // A shorter file would raise SIGBUS when the header is read.
  if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size >= format::kHeaderBytes)
    memory = mmap(nullptr, format::kHeaderBytes, PROT_READ | (steers ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
  auto bad = [&](const char* why) {
    if (memory != MAP_FAILED) munmap(memory, format::kHeaderBytes);
    close(fd);
    return Error{ErrorCode::kInvalidInput, why, path};
  };
  if (memory == MAP_FAILED) return bad("is not a process file");
  auto* header = static_cast<format::FileHeader*>(memory);
  if (std::memcmp(header->magic, format::kMagic, sizeof header->magic) != 0)
    return bad("is not a process file");
  // Requests came with minor version 2.
  if (header->major != format::kMajor || header->minor < 2 || header->header_bytes != format::kHeaderBytes)
    return bad("was written by a capture library of another version, which cannot be controlled");
  return std::unique_ptr<LiveHeader>(new LiveHeader(path, fd, header));
}

LiveHeader::~LiveHeader() {
  munmap(header_, format::kHeaderBytes);
  close(fd_);
}

InForce LiveHeader::in_force() const {
  const ControlState& from = header_->in_force;
  InForce now;
  // First, with acquire: the process stores `taken` last, so the words below are at least as new.
  now.state.taken = __atomic_load_n(&from.taken, __ATOMIC_ACQUIRE);
  now.state.mode = format::load_word(from.mode);
  now.state.keep = format::load_word(from.keep);
  now.state.of = format::load_word(from.of);
  now.state.min_bytes = format::load_word(from.min_bytes);
  now.state.until_monotonic_ns = format::load_word(from.until_monotonic_ns);
  now.state.comms = format::load_word(from.comms);
  now.state.refused = format::load_word(from.refused);
  now.state.mode_after = format::load_word(from.mode_after);
  now.state.keep_after = format::load_word(from.keep_after);
  now.state.of_after = format::load_word(from.of_after);
  now.state.waiting = format::load_word(from.waiting);
  now.asked = format::load_word(header_->control);
  return now;
}

Result<uint32_t> LiveHeader::ask(ControlRequest request) {
  if (!lock(fd_)) return system_error("another `lockstep control` holds it", path_, errno);
  uint32_t number = format::load_word(header_->control) + 1;
  // 0 means that nothing was ever asked.
  if (number == 0) number = 1;
  // The number is in it, so the same words under an older number do not pass.
  request.check = control_check(request, number);
  format::copy_words(header_->request, request);
  // Last, with release: a process that sees the number sees the whole request.
  __atomic_store_n(&header_->control, number, __ATOMIC_RELEASE);
  flock(fd_, LOCK_UN);
  return number;
}

}  // namespace lockstep::cli::control
