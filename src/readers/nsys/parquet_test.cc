// SPDX-License-Identifier: Apache-2.0
// Files that arrow-rs wrote (tests/data/nsys), whole and damaged.
#include "readers/nsys/parquet.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "readers/nsys/packing.h"
#include "readers/nsys/thrift.h"
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

// Writes the smallest file with one column, in Thrift's compact protocol.
class SmallFile {
 public:
  enum : char { kI32 = 5, kI64 = 6, kBinary = 8, kList = 9, kStruct = 12 };
  static std::string varint(uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
  }
  static std::string field(int skip, char type, const std::string& value) {
    return static_cast<char>(skip << 4 | type) + value;
  }
  static std::string number(int skip, uint64_t value) { return field(skip, kI64, varint(2 * value)); }
  static std::string text(int skip, const std::string& value) {
    return field(skip, kBinary, varint(value.size()) + value);
  }
  static std::string list(int skip, const std::vector<std::string>& structs) {
    std::string out(1, static_cast<char>(structs.size() << 4 | kStruct));
    for (const std::string& one : structs) out += one + '\0';
    return field(skip, kList, out);
  }
  static std::string page(int kind, uint64_t values, const std::string& bytes) {
    const std::string size = number(1, bytes.size());
    const std::string head = field(kind == 0 ? 2 : 4, kStruct, number(1, values) + number(1, 0) + '\0');
    return number(1, static_cast<uint64_t>(kind)) + size + size + head + '\0' + bytes;
  }
  // `type`: as the format numbers it.
  static std::string of(int type, const std::string& pages, uint64_t rows) {
    const std::string column = number(1, static_cast<uint64_t>(type)) + number(2, 1) + text(1, "id");
    const std::string chunk =
        field(3, kStruct, number(4, 0) + number(1, rows) + number(2, pages.size()) + number(2, 4) + '\0');
    const std::string footer = list(2, {text(4, "schema") + number(1, 1), column}) +
                               list(2, {list(1, {chunk}) + number(2, rows)}) + '\0';
    std::string size(4, '\0');
    for (size_t i = 0; i < 4; ++i) size[i] = static_cast<char>(footer.size() >> (8 * i));
    return "PAR1" + pages + footer + size + "PAR1";
  }
};

TEST(Parquet, AFewBytesAskForNoMoreThanTheirShare) {
  const test::TemporaryFolder folder;
  const auto read = [&](int type, const std::string& pages, uint64_t count, std::string& error) {
    std::ofstream(folder / "small.parquet", std::ios::binary) << SmallFile::of(type, pages, count);
    error.clear();
    return rows(folder / "small.parquet", {"id"}, &error).size();
  };
  // So many rows that have no value: one run of levels.
  const auto nothing = [](uint64_t count) {
    const std::string run = SmallFile::varint(2 * count) + '\0';
    return SmallFile::page(0, count, std::string{static_cast<char>(run.size()), 0, 0, 0} + run);
  };
  std::string error;
  EXPECT_EQ(read(2, nothing(1000), 1000, error), 1000u) << error;
  constexpr uint64_t kMany = 1 << 24;
  EXPECT_EQ(read(2, nothing(kMany), kMany, error), 0u);
  EXPECT_NE(error.find("more rows than"), std::string::npos) << error;
  // A dictionary of numbers that nothing asks for.
  constexpr int kDouble = 5;
  const std::string entry(8, '\0');
  EXPECT_EQ(read(kDouble, SmallFile::page(2, 1, entry) + nothing(10), 10, error), 10u) << error;
  EXPECT_EQ(read(kDouble, SmallFile::page(2, uint64_t{1} << 40, entry) + nothing(10), 10, error), 0u);
  EXPECT_NE(error.find("damaged dictionary"), std::string::npos) << error;
}

// A run of levels of one bit stores a whole byte.
TEST(Parquet, ALevelIsOneRowWhateverItsByte) {
  const test::TemporaryFolder folder;
  constexpr size_t kRows = 1000;
  const std::string run = SmallFile::varint(2 * kRows) + '\xff';
  const std::string values(4 * kRows, '\0');
  std::ofstream(folder / "small.parquet", std::ios::binary) << SmallFile::of(
      1, SmallFile::page(0, kRows, std::string{static_cast<char>(run.size()), 0, 0, 0} + run + values),
      kRows);
  std::string error;
  EXPECT_EQ(rows(folder / "small.parquet", {"id"}, &error).size(), kRows) << error;
}

// What is left behind a value that is passed over; -1: it cannot be.
int left_behind(ThriftReader::Type type, const std::string& bytes) {
  ThriftReader in(bytes_of(bytes));
  in.skip(type);
  return in.is_good() ? static_cast<int>(bytes.size() - in.offset()) : -1;
}

TEST(Thrift, EachElementTakesAByte) {
  using Type = ThriftReader::Type;
  using namespace std::string_literals;
  EXPECT_EQ(left_behind(Type::kList, "\x51"s + "12345" + "rest"), 4) << "truth values";
  EXPECT_EQ(left_behind(Type::kMap, "\x02\x12"s + "1212" + "rest"), 4) << "truth values";
  EXPECT_EQ(left_behind(Type::kList, "\x00"s + "rest"), 4) << "an empty list of nothing";
  EXPECT_EQ(left_behind(Type::kList, "\x50"s + "12345"), -1);
  EXPECT_EQ(left_behind(Type::kSet, "\x50"s + "12345"), -1);
  EXPECT_EQ(left_behind(Type::kMap, "\x02\x03"s + "1234"), -1);
  EXPECT_EQ(left_behind(Type::kMap, "\x02\x30"s + "1234"), -1);
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
