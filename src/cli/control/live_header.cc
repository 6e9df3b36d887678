// SPDX-License-Identifier: Apache-2.0
// Maps the header of a file that a live process writes. Every word is hostile and may change between two
// looks, so each is loaded by itself. A file that is cut takes away what is mapped: looking alone reads. The
// lock keeps tools from writing over each other's requests; the process never takes it.
#include "cli/control/live_header.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "base/input_file.h"
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

constexpr const char* kNoProcessFile = "is not a process file";

// Why it cannot be steered; nullptr: it can.
const char* why_not(const format::FileHeader& header) {
  if (std::memcmp(header.magic, format::kMagic, sizeof header.magic) != 0) return kNoProcessFile;
  // Requests came with minor version 2.
  if (header.major != format::kMajor || header.minor < 2 || header.header_bytes != format::kHeaderBytes)
    return "was written by a capture library of another version, which cannot be controlled";
  return nullptr;
}

InForce in_force_of(const format::FileHeader& header) {
  const ControlState& from = header.in_force;
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
  now.asked = format::load_word(header.control);
  return now;
}

}  // namespace

Result<SeenHeader> look_at_header(const std::string& path) {
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  format::FileHeader header{};
  const size_t got = file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  const char* const why = got < sizeof header ? kNoProcessFile : why_not(header);
  if (why != nullptr) return Error{ErrorCode::kInvalidInput, why, path};
  return SeenHeader{header.source, in_force_of(header)};
}

Result<std::unique_ptr<LiveHeader>> LiveHeader::open(const std::string& path) {
  // O_NONBLOCK: a FIFO of that name must not hold up the tool; it is refused below.
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return system_error("cannot be opened", path, errno);
  struct stat file {};
  void* memory = MAP_FAILED;
  // A shorter file would raise SIGBUS when the header is read.
  if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size >= format::kHeaderBytes)
    memory = mmap(nullptr, format::kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  auto* header = memory == MAP_FAILED ? nullptr : static_cast<format::FileHeader*>(memory);
  const char* const why = header == nullptr ? kNoProcessFile : why_not(*header);
  if (why == nullptr) return std::unique_ptr<LiveHeader>(new LiveHeader(path, fd, header));
  if (header != nullptr) munmap(header, format::kHeaderBytes);
  close(fd);
  return Error{ErrorCode::kInvalidInput, why, path};
}

LiveHeader::~LiveHeader() {
  munmap(header_, format::kHeaderBytes);
  close(fd_);
}

InForce LiveHeader::in_force() const { return in_force_of(*header_); }

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
