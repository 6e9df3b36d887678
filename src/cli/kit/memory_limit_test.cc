// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep::cli {
namespace {

class FreeInControlGroups : public ::testing::Test {
 protected:
  void set(const std::string& path, const std::string& text) {
    const std::filesystem::path at = std::filesystem::path(folder_.path()) / path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text << "\n";
  }
  uint64_t of(const std::string& groups) { return free_in_control_groups(groups, folder_.path()); }

 private:
  const test::TemporaryFolder folder_;
};

TEST_F(FreeInControlGroups, AreTheLeastOfTheGroupAndThoseAboveIt) {
  set("pods/one/memory.max", "900");
  set("pods/one/memory.current", "100");
  set("pods/memory.max", "1000");
  set("pods/memory.current", "700");
  set("memory.max", "max");
  EXPECT_EQ(of("0::/pods/one\n"), 300u) << "others in the pod use the rest";
  set("pods/one/memory.max", "200");
  EXPECT_EQ(of("0::/pods/one\n"), 100u);
  set("memory.max", "50");
  EXPECT_EQ(of("0::/pods/one\n"), 50u);
  EXPECT_EQ(of("0::/not/there\n"), 50u) << "what a container sees of its host's path";
  EXPECT_EQ(of("0::/\n"), 50u);
}

TEST_F(FreeInControlGroups, OfVersion1AreThoseOfTheMemoryController) {
  set("memory/job/step/memory.limit_in_bytes", "9223372036854771712");
  set("memory/job/memory.limit_in_bytes", "800");
  set("memory/job/memory.usage_in_bytes", "900");
  EXPECT_EQ(of("12:cpu,cpuacct:/job/step\n4:memory:/job/step\n0::/\n"), 0u)
      << "more is used than there may be";
  EXPECT_EQ(of("4:cpu,memory:/job"), 0u);
  EXPECT_EQ(of("4:memoryless:/job\n"), UINT64_MAX);
  EXPECT_EQ(of("nonsense\n\n:\n0:"), UINT64_MAX);
}

}  // namespace
}  // namespace lockstep::cli
