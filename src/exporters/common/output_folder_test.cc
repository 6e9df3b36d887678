// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/output_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/support/temporary_folder.h"

namespace lockstep::exporters::common {
namespace {

namespace fs = std::filesystem;

class OutputFolderTest : public ::testing::Test {
 protected:
  static void make(const std::string& place, const std::string& file, const std::string& text) {
    fs::create_directories(place);
    std::ofstream(place + "/" + file) << text;
  }
  static std::string content(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
  }

  const FolderKind kind{"folder of tables",
                        [](const fs::directory_entry& entry) { return entry.path().filename() == "own"; }};
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path(), path = folder + "/tables", whole = folder + "/whole";
};

TEST_F(OutputFolderTest, TakesTheFreePlaceAndThatOfAnOlderOne) {
  for (const char* text : {"first", "second"}) {
    make(whole, "own", text);
    const auto replaced = replace_folder(whole, path, kind);
    ASSERT_TRUE(replaced) << replaced.error().message();
    EXPECT_EQ(content(path + "/own"), text);
    EXPECT_EQ(names(), std::set<std::string>{"tables"});
  }
}

TEST_F(OutputFolderTest, LeavesWhatHoldsOtherThings) {
  make(whole, "own", "new");
  make(path, "own", "old");
  make(path, "mine", "precious");
  const auto replaced = replace_folder(whole, path, kind);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code, ErrorCode::kUsage);
  EXPECT_EQ(content(path + "/own"), "old");
  EXPECT_EQ(content(path + "/mine"), "precious");
  EXPECT_EQ(content(whole + "/own"), "new");
}

TEST_F(OutputFolderTest, TheOlderOneComesBackWhereTheNewOneCannotComeIn) {
  make(path, "own", "old");
  const auto replaced = replace_folder(whole, path, kind);  // there is no new one
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code, ErrorCode::kIo);
  EXPECT_EQ(content(path + "/own"), "old");
  EXPECT_EQ(names(), std::set<std::string>{"tables"});
}

TEST_F(OutputFolderTest, ALinkAndAFileAreNoFolder) {
  make(folder + "/elsewhere", "own", "old");
  fs::create_directory_symlink(folder + "/elsewhere", path);
  EXPECT_FALSE(check_replaceable(path, kind));
  EXPECT_FALSE(check_replaceable(folder + "/elsewhere/own", kind));
  EXPECT_TRUE(check_replaceable(folder + "/elsewhere", kind));
  EXPECT_TRUE(check_replaceable(folder + "/absent", kind));
}

}  // namespace
}  // namespace lockstep::exporters::common
