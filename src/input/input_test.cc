// SPDX-License-Identifier: Apache-2.0
#include "input/input.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "format/file_layout.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::input {
namespace {

namespace fs = std::filesystem;

// Of a process that has just begun.
void write_process_file(const std::string& path, int32_t pid) {
  format::FileHeader header{};
  std::memcpy(header.magic, format::kMagic, sizeof header.magic);
  header.major = format::kMajor;
  header.minor = format::kMinor;
  header.header_bytes = format::kHeaderBytes;
  header.chunk_bytes = format::kChunkBytes;
  header.unit_bytes = format::kUnitBytes;
  header.pid = pid;
  header.state = static_cast<uint32_t>(format::FileState::kOpen);
  std::string bytes(format::kHeaderBytes, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(OpenInput, CountsTheFilesThatItReads) {
  const test::TemporaryFolder folder;
  write_process_file(folder / "a/h.1.1.nccl.lks", 1);
  write_process_file(folder / "b/h.2.1.nccl.lks", 2);
  const auto input = open_input({folder.path()});
  ASSERT_TRUE(input) << input.error().message();
  EXPECT_EQ(input->source->processes(), 2u);
  EXPECT_EQ(input->files, 2u);
  EXPECT_EQ(input->bytes, uint64_t{2} * format::kHeaderBytes);
}

TEST(OpenMixedInput, OfNothingIsAnError) { EXPECT_FALSE(open_mixed_input({})); }

}  // namespace
}  // namespace lockstep::input
