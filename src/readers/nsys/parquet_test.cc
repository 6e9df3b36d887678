// SPDX-License-Identifier: Apache-2.0
// Files that arrow-rs wrote (tests/data/nsys), whole and damaged.
#include "readers/nsys/parquet.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "readers/nsys/packing.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::readers::nsys {
namespace {

const std::filesystem::path kFolder = LOCKSTEP_SOURCE_DIR "/tests/data/nsys";

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::vector<std::string>> rows(const std::filesystem::path& path,
                                           std::vector<std::string_view> columns,
                                           std::string* error = nullptr) {
  std::vector<std::vector<std::string>> out;
  const auto file = ParquetFile::open(path);
  const auto take = [&](std::span<const Cell> row) {
    out.emplace_back();
    for (const Cell& cell : row)
      out.back().push_back(cell.kind == Cell::Kind::kNone      ? "-"
                           : cell.kind == Cell::Kind::kInteger ? std::to_string(cell.integer)
                                                               : std::string(cell.bytes));
  };
  const Result<void> read = file ? file->read(columns, take) : Result<void>(file.error());
  if (!read && error != nullptr) *error = read.error().message();
  return out;
}

TEST(Parquet, ReadsNumbersTextAndWhatIsMissing) {
  const auto entries =
      rows(kFolder / "NVTX_PAYLOAD_SCHEMA_ENTRIES.parquet", {"schemaId", "name", "offset", "no such column"});
  ASSERT_EQ(entries.size(), 6u);
  EXPECT_EQ(entries[0], (std::vector<std::string>{"1001", "NCCL communicator ID", "-", "-"}));
  EXPECT_EQ(entries[2], (std::vector<std::string>{"1001", "Rank", "12", "-"}));
  EXPECT_EQ(entries[5], (std::vector<std::string>{"1002", "Message size [bytes]", "8", "-"}));
}

// Dictionaries packed by zstd in pages of version 2, and plain numbers packed by gzip.
TEST(Parquet, ReadsPagesOfBothVersionsAndAllPackings) {
  const auto kernels =
      rows(kFolder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet", {"start", "correlationId", "gridX"});
  ASSERT_EQ(kernels.size(), 80u);
  EXPECT_EQ(kernels[1], (std::vector<std::string>{"1011500", "2", "24"}));
  const auto calls = rows(kFolder / "CUPTI_ACTIVITY_KIND_RUNTIME.parquet", {"start", "globalTid"});
  ASSERT_EQ(calls.size(), 80u);
  EXPECT_EQ(calls[79], (std::vector<std::string>{"1394100", std::to_string((101ull << 24) + 102)}));
  const auto epoch = rows(kFolder / "TARGET_INFO_SESSION_START_TIME.parquet", {"utcEpochNs"});
  ASSERT_EQ(epoch.size(), 1u);
  EXPECT_EQ(epoch[0][0], "1795203349000000000");
}

TEST(Parquet, UnpacksSnappy) {
  std::vector<std::byte> out;
  // "abcd" twice: a literal of 4, then a copy of 4 from 4 before.
  const std::string packed = {8, 3 << 2, 'a', 'b', 'c', 'd', 1, 4};
  ASSERT_TRUE(unpack_snappy(bytes_of(packed), 100, out));
  EXPECT_EQ(std::memcmp(out.data(), "abcdabcd", 8), 0);
  EXPECT_FALSE(unpack_snappy(bytes_of(packed), 7, out)) << "more than was allowed";
  for (size_t size = 0; size < packed.size(); ++size)
    EXPECT_FALSE(unpack_snappy(bytes_of(std::string_view(packed).substr(0, size)), 100, out)) << size;
  EXPECT_FALSE(unpack_snappy(bytes_of(std::string{4, 1, 1}), 100, out)) << "a copy from before the begin";
}

TEST(Parquet, SaysWhatIsWrongWithAFileThatIsCut) {
  const test::TemporaryFolder folder;
  const std::string whole = text_of(kFolder / "NVTX_EVENTS.parquet");
  std::string error;
  std::ofstream(folder / "cut.parquet") << whole.substr(0, whole.size() - 3);
  EXPECT_TRUE(rows(folder / "cut.parquet", {"start"}, &error).empty());
  EXPECT_NE(error.find("its end is missing"), std::string::npos) << error;
}

// Each byte, one at a time: an error or other values, never a crash, and never more rows than the footer can
// mean.
TEST(Parquet, SurvivesDamage) {
  const test::TemporaryFolder folder;
  for (const char* name : {"NVTX_PAYLOAD_SCHEMA_ENTRIES.parquet", "StringIds.parquet"}) {
    const std::string whole = text_of(kFolder / name);
    for (size_t at = 4; at < whole.size(); ++at) {
      for (const int flip : {0xff, 0x01}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ flip);
        const std::filesystem::path path = folder / "damaged.parquet";
        std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
        rows(path, {"id", "value", "schemaId", "name", "offset"});
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::readers::nsys
