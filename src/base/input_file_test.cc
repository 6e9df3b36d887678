// SPDX-License-Identifier: Apache-2.0
#include "base/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

std::string temp(const char* name) {
  static const test::TemporaryFolder folder;
  return folder / name;
}

TEST(InputFile, ReadsWhatIsThere) {
  std::string path = temp("short");
  std::ofstream(path) << "0123456789";
  auto file = InputFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 10u);
  std::array<std::byte, 8> buffer{};
  EXPECT_EQ(file->read_at(4, buffer), 6u);
  EXPECT_EQ(static_cast<char>(buffer[0]), '4');
  EXPECT_EQ(file->read_at(100, buffer), 0u);
}

TEST(InputFile, SurvivesTruncationWhileOpen) {
  std::string path = temp("cut");
  std::ofstream(path) << std::string(100000, 'x');
  auto file = InputFile::open(path);
  ASSERT_TRUE(file);
  std::filesystem::resize_file(path, 10);
  std::array<std::byte, 64> buffer{};
  EXPECT_EQ(file->read_at(50000, buffer), 0u);
  EXPECT_EQ(file->read_at(0, buffer), 10u);
}

TEST(InputFile, SkipsHoles) {
  std::string path = temp("sparse");
  std::ofstream(path) << "x";
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  auto file = InputFile::open(path);
  ASSERT_TRUE(file);
  uint64_t next = file->next_data(uint64_t{1} << 20);
  EXPECT_TRUE(next == file->size() || next == uint64_t{1} << 20);  // the latter: a file system without holes
}

TEST(InputFile, RefusesWhatIsNoFile) {
  EXPECT_EQ(InputFile::open(temp("absent")).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(InputFile::open(::testing::TempDir()));
  std::string fifo = temp("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(InputFile::open(fifo));
}

}  // namespace
}  // namespace lockstep
