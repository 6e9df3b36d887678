// SPDX-License-Identifier: Apache-2.0
#include "capture/core/host/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep::capture {
namespace {

class MemoryLimit : public ::testing::Test {
 protected:
  void set(const std::string& path, const std::string& text) {
    const std::filesystem::path at = std::filesystem::path(folder_.path()) / path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  uint64_t of(const char* groups) { return memory_limit(groups, folder_.path().c_str()); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(MemoryLimit, OfVersion2IsTheLeastOfTheGroupAndThoseAboveIt) {
  set("pods/one/memory.max", "max\n");
  set("pods/memory.max", "67108864\n");
  set("memory.max", "1073741824\n");
  EXPECT_EQ(of("0::/pods/one\n"), 67108864u);
  EXPECT_EQ(of("0::/\n"), 1073741824u);
  EXPECT_EQ(of("0::/not/there\n"), 1073741824u) << "what a container sees of its host's path";
}

TEST_F(MemoryLimit, OfVersion1IsThatOfTheMemoryController) {
  set("memory/job/memory.limit_in_bytes", "33554432\n");
  set("memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(of("12:cpu,cpuacct:/job\n4:memory:/job\n0::/\n"), 33554432u);
  EXPECT_EQ(of("4:cpu,memory:/job"), 33554432u);
  EXPECT_EQ(of("4:memoryless:/job\n"), UINT64_MAX);
}

TEST_F(MemoryLimit, NoneWhereNothingIsSaid) {
  EXPECT_EQ(of(""), UINT64_MAX);
  EXPECT_EQ(of("nonsense\n\n:\n0:"), UINT64_MAX);
  EXPECT_EQ(of(("0::/" + std::string(5000, 'x')).c_str()), UINT64_MAX);
  own_memory_limit();
}

}  // namespace
}  // namespace lockstep::capture
