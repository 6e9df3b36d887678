// SPDX-License-Identifier: Apache-2.0
#include "base/column_memory.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

constexpr size_t kLong = size_t{1} << 20;

// The limit is the program's: each test begins and ends without one.
class ColumnMemory : public ::testing::Test {
 protected:
  void SetUp() override { set_column_limit({}); }
  void TearDown() override { set_column_limit({}); }
};

TEST_F(ColumnMemory, ShortColumnsTakeNoExtent) {
  const uint64_t before = column_use().memory;
  Column<int64_t> column(100, 7);
  EXPECT_EQ(column_use().memory, before);
  EXPECT_EQ(std::accumulate(column.begin(), column.end(), int64_t{0}), 700);
}

TEST_F(ColumnMemory, LongColumnsShareExtentsAndGiveThemBack) {
  {
    Column<int64_t> first(kLong, 1);
    const uint64_t with_one = column_use().memory;
    Column<int32_t> second(kLong, 2);
    EXPECT_EQ(column_use().memory, with_one);
    first.push_back(3);
    second.push_back(4);
    EXPECT_EQ(std::accumulate(first.begin(), first.end(), int64_t{0}), static_cast<int64_t>(kLong) + 3);
    EXPECT_EQ(std::accumulate(second.begin(), second.end(), int64_t{0}), 2 * static_cast<int64_t>(kLong) + 4);
  }
  set_column_limit({});  // lets go of the extent that new columns would have gone to
  EXPECT_EQ(column_use().memory, 0u);
}

TEST_F(ColumnMemory, AVeryLongColumnHasItsOwnExtent) {
  Column<uint8_t> column(size_t{100} << 20, 5);
  EXPECT_GE(column_use().memory, column.size());
  EXPECT_EQ(column.back(), 5);
  column = Column<uint8_t>();
  EXPECT_LT(column_use().memory, size_t{100} << 20);
}

TEST_F(ColumnMemory, PastTheLimitColumnsLieInFilesWithoutAName) {
  const test::TemporaryFolder folder;
  set_column_limit({.bytes = 0, .directory = folder.path()});
  Column<uint32_t> column(kLong);
  EXPECT_GT(column_use().files, 0u);
  std::iota(column.begin(), column.end(), 0u);
  for (int i = 0; i < 5; ++i) column.insert(column.end(), column.begin(), column.begin() + 1000);
  EXPECT_EQ(column[kLong - 1], kLong - 1);
  EXPECT_EQ(column.back(), 999u);
  column = Column<uint32_t>();
  set_column_limit({});
  EXPECT_EQ(column_use().files, 0u);
}

TEST_F(ColumnMemory, WhereTheDirectoryTakesNoFileTheErrorSaysSo) {
  set_column_limit({.bytes = 0, .directory = "/nonexistent"});
  try {
    Column<uint32_t> column(kLong);
    FAIL() << "no error";
  } catch (const ColumnMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent takes no more: No such file"), std::string::npos)
        << error.what();
  }
}

TEST_F(ColumnMemory, ManyThreadsAllocateAndFree) {
  std::vector<std::jthread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (uint32_t i = 0; i < 200; ++i) {
        Column<uint32_t> column((kLeastExtentBytes << i % 8) / sizeof(uint32_t), t * 1000 + i);
        EXPECT_EQ(column.front(), column.back());
      }
    });
  }
  threads.clear();
  set_column_limit({});
  EXPECT_EQ(column_use().memory, 0u);
}

}  // namespace
}  // namespace lockstep
