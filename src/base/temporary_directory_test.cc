// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_directory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class TemporaryDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("TMPDIR", root_.c_str(), 1); }
  void TearDown() override { ::unsetenv("TMPDIR"); }
  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(TemporaryDirectoryTest, GoesWithAllThatIsInIt) {
  std::string path;
  {
    auto made = TemporaryDirectory::make();
    ASSERT_TRUE(made) << made.error().message();
    path = made->path();
    fs::create_directories(path + "/a/b");
    std::ofstream(path + "/a/b/file") << "text";
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    TemporaryDirectory moved = *std::move(made);
    EXPECT_TRUE(fs::exists(path + "/a/b/file"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(TemporaryDirectoryTest, WhatAKilledProgramLeftIsRemovedAndWhatIsInUseStays) {
  auto in_use = TemporaryDirectory::make();
  ASSERT_TRUE(in_use);
  const fs::path left = root_ / "lockstep-files-killed";
  fs::create_directories(left / "inside");
  fs::copy_file(in_use->path() + "/.boot", left / ".boot");
  fs::create_directories(root_ / "somebody-elses");
  fs::create_directories(root_ / "lockstep-files-of-mine");  // a user's own
  auto another = TemporaryDirectory::make();
  ASSERT_TRUE(another);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(in_use->path()));
  EXPECT_TRUE(fs::exists(root_ / "somebody-elses"));
  EXPECT_TRUE(fs::exists(root_ / "lockstep-files-of-mine"));
}

TEST_F(TemporaryDirectoryTest, WithoutRoomItSaysWhatToDo) {
  ::setenv("TMPDIR", (root_ / "absent").c_str(), 1);
  auto made = TemporaryDirectory::make();
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("TMPDIR"), std::string::npos) << made.error().message();
}

TEST_F(TemporaryDirectoryTest, OneThatCannotBeLockedIsNotLeftBehind) {
  const int next = ::dup(0);
  ::close(next);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // It can be made, and cannot be opened.
  const rlimit full{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  const auto made = TemporaryDirectory::make();
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("Too many open files"), std::string::npos) << made.error().message();
  EXPECT_TRUE(fs::is_empty(root_));
}

}  // namespace
}  // namespace lockstep
