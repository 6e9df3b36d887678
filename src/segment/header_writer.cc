// SPDX-License-Identifier: Apache-2.0
#include "segment/header_writer.h"

#include <errno.h>
#include <unistd.h>

namespace lockstep::segment {

bool write_at(int file, const void* bytes, size_t size, uint64_t offset) {
  const auto* from = static_cast<const char*>(bytes);
  while (size != 0) {
    const ssize_t written = pwrite(file, from, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) return false;
    from += written;
    offset += static_cast<uint64_t>(written);
    size -= static_cast<size_t>(written);
  }
  return true;
}

// The part with `state` goes last: who sees the new state sees the rest of the header, too. Likewise the
// number of the request that the rest of `in_force` answers.
bool write_header(int file, const format::FileHeader& header) {
  using format::FileHeader;
  constexpr size_t kLive = offsetof(FileHeader, control) + sizeof header.control;
  constexpr size_t kRequest = offsetof(FileHeader, request), kNumber = offsetof(FileHeader, in_force);
  constexpr size_t kAnswer = kNumber + sizeof header.in_force.taken;
  static_assert(offsetof(format::ControlState, taken) == 0);
  const auto* bytes = reinterpret_cast<const char*>(&header);
  return write_at(file, bytes + kAnswer, sizeof header - kAnswer, kAnswer) &&
         write_at(file, bytes + kNumber, sizeof header.in_force.taken, kNumber) &&
         write_at(file, bytes + kLive, kRequest - kLive, kLive) &&
         write_at(file, bytes, offsetof(FileHeader, control), 0);
}

bool write_last_header(int file, const format::FileHeader& header) {
  constexpr char kNone[sizeof header.segment] = {};
  return write_header(file, header) &&
         write_at(file, kNone, sizeof kNone, offsetof(format::FileHeader, segment));
}

}  // namespace lockstep::segment
