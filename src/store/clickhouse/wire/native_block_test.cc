// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/wire/native_block.h"

#include <gtest/gtest.h>

namespace lockstep::store::clickhouse {
namespace {

using namespace std::string_literals;
using enum ColumnType;

TEST(NativeBlock, IsTheBytesThatTheFormatAsksFor) {
  constexpr Column kColumns[] = {{"a", kUInt8}, {"day", kDate}, {"n", kInt32}, {"t", kString}};
  BlockWriter block(kColumns);
  block.number(7).number(0x0102).number(static_cast<uint64_t>(-2)).text("x\0y"s);
  block.number(8).number(3).number(5).text("");
  EXPECT_EQ(block.rows(), 2u);
  EXPECT_EQ(block.encode(9),
            "\x05\x02"s  // columns, rows
            "\x01"
            "a\x05"
            "UInt8"
            "\x07\x08"s  //
            "\x03"
            "day\x04"
            "Date\x02\x01\x03\x00"s  //
            "\x01n\x05"
            "Int32\xfe\xff\xff\xff\x05\0\0\0"s
            "\x01t\x06String\x03x\0y\x00"s  //
            "\x07version\x06UInt64\x09\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0"s);
}

TEST(NativeBlock, PacksArraysAsOffsetsThenElements) {
  constexpr Column kColumns[] = {{"r", kInt32s}, {"s", kStrings}, {"x", kFloat64}};
  BlockWriter block(kColumns);
  block.numbers({}).texts(std::vector<std::string>{"ab", ""}).real(1.5);
  block.numbers(std::vector<int32_t>{1, -1}).texts({}).real(0);
  EXPECT_EQ(block.encode(1),
            "\x04\x02"
            "\x01r\x0c"
            "Array(Int32)"s
            "\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"
            "\x01\0\0\0\xff\xff\xff\xff"s
            "\x01s\x0d"
            "Array(String)"s
            "\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"
            "\x02"
            "ab\0"s
            "\x01x\x07"
            "Float64\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\0\0"s
            "\x07version\x06UInt64\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"s);
}

TEST(NativeBlock, WritesLengthsPastOneByte) {
  constexpr Column kColumns[] = {{"t", kString}};
  BlockWriter block(kColumns);
  block.text(std::string(300, 'z'));
  const std::string bytes = block.encode(0);
  EXPECT_EQ(bytes.substr(0, 13), "\x02\x01\x01t\x06String\xac\x02"s);
  EXPECT_EQ(bytes.substr(13, 300), std::string(300, 'z'));
}

TEST(NativeBlock, SumsWhatTheServerSums) {
  constexpr Column kColumns[] = {{"a", kUInt8}, {"n", kInt32}, {"t", kString}, {"r", kInt32s}, {"d", kDate}};
  BlockWriter block(kColumns);
  block.number(300)
      .number(static_cast<uint64_t>(-2))
      .text("abc")
      .numbers(std::vector<int32_t>{4, 5})
      .number(9);
  block.number(1).number(1).text("d").numbers({}).number(9);
  EXPECT_EQ(block.sums(), (Sums{44 + 1, static_cast<uint64_t>(-1), 4, 2, 0}));
}

TEST(NativeBlock, HasADigestOfItsContentAlone) {
  constexpr Column kColumns[] = {{"t", kString}, {"n", kUInt32}},
                   kOthers[] = {{"u", kString}, {"n", kUInt32}};
  const auto digest = [](std::span<const Column> columns, const char* text, uint64_t number) {
    BlockWriter block(columns);
    block.text(text).number(number);
    return block.digest();
  };
  EXPECT_EQ(digest(kColumns, "a", 1), digest(kColumns, "a", 1));
  EXPECT_NE(digest(kColumns, "a", 1), digest(kColumns, "b", 1));
  EXPECT_NE(digest(kColumns, "a", 1), digest(kColumns, "a", 2));
  EXPECT_NE(digest(kColumns, "a", 1), digest(kOthers, "a", 1));
  BlockWriter two(kColumns);
  two.text("a").number(1).text("a").number(1);
  EXPECT_NE(two.digest(), digest(kColumns, "a", 1));
}

}  // namespace
}  // namespace lockstep::store::clickhouse
