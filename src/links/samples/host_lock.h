// SPDX-License-Identifier: Apache-2.0
// A file that one process of a host holds at a time, by flock. The kernel lets go of it when its holder dies,
// so none is ever left behind.
#pragma once
#include <cstdint>
#include <string>

namespace lockstep::links {

class HostLock {
 public:
  enum class Taken : uint8_t { kYes, kByAnother, kImpossible };
  explicit HostLock(const std::string& path);  // makes the file
  ~HostLock();
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;
  // Does not wait. Whoever has it may take it again.
  Taken take() const;
  // Whether anybody holds it; makes no file.
  static bool is_held(const std::string& path);

 private:
  int fd_;
};

}  // namespace lockstep::links
