// SPDX-License-Identifier: Apache-2.0
// A file system of its own for this process and its children.
#pragma once
#include <sched.h>
#include <sys/mount.h>

#include <string>

namespace lockstep::test {

// A tmpfs over a folder. False where this process may not.
inline bool mount_private_tmpfs(const std::string& at, const char* options) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  return mount("tmpfs", at.c_str(), "tmpfs", 0, options) == 0;
}

}  // namespace lockstep::test
