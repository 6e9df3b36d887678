// SPDX-License-Identifier: Apache-2.0
// A folder of a test's own, for as long as this lives. No other test has it, nor another checkout's, nor a
// test of another machine that shares the file system.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::test {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(::testing::TempDir() + "lockstep-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) {
      ADD_FAILURE() << "no temporary folder can be made: " << path_;
      std::abort();
    }
  }
  ~TemporaryFolder() {
    if (::getpid() != owner_) return;  // a child that exits
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Of what lies, or will lie, in it.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  const pid_t owner_ = ::getpid();
};

}  // namespace lockstep::test
