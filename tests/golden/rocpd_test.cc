// SPDX-License-Identifier: Apache-2.0
// Files as RPD creates them, of ranks that all call their GPU "device 0": how busy each GPU was comes out of
// the merged file.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "job/assemble/assembled_source.h"
#include "readers/reader.h"
#include "store/store.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::golden {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 3, kKernels = 200;
constexpr int64_t kBoot = 5'000'000'000'000;

using Interval = std::pair<int64_t, int64_t>;

void execute(sqlite3* handle, const std::string& sql) {
  char* why = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
  sqlite3_free(why);
}

// Two queues whose kernels overlap, a copy now and then, and pauses of different length.
std::vector<Interval> write(const std::string& path, int rank) {
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  std::string sql =
      "PRAGMA synchronous=OFF; BEGIN;"
      "CREATE TABLE rocpd_metadata(id integer NOT NULL PRIMARY KEY AUTOINCREMENT, tag varchar(4096) NOT "
      "NULL, value varchar(4096) NOT NULL);"
      "CREATE TABLE rocpd_string(id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT "
      "NULL);"
      "CREATE TABLE rocpd_op(id integer NOT NULL PRIMARY KEY AUTOINCREMENT, gpuId integer NOT NULL, queueId "
      "integer NOT NULL,"
      " sequenceId integer NOT NULL, start integer NOT NULL, \"end\" integer NOT NULL, description_id bigint "
      "NOT NULL,"
      " opType_id bigint NOT NULL);"
      "INSERT INTO rocpd_string "
      "VALUES(1,'gemm'),(2,'ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)'),"
      "(3,'KernelExecution'),(4,'CopyHostToDevice');"
      "INSERT INTO rocpd_metadata(tag, value) VALUES('schema_version','3'),('pid','" +
      std::to_string(1000 + rank) + "');";
  std::vector<Interval> work;
  int64_t at = kBoot;
  for (int i = 0; i < kKernels; ++i) {
    const int64_t length = 300'000 + 1'000 * ((i * 7919 + rank * 104'729) % 400);
    const auto add = [&](int64_t from, int64_t until, int queue, int name, int type) {
      work.emplace_back(from, until);
      sql +=
          "INSERT INTO rocpd_op(gpuId, queueId, sequenceId, start, \"end\", description_id, opType_id) "
          "VALUES(0," +
          std::to_string(queue) + ",0," + std::to_string(from) + "," + std::to_string(until) + "," +
          std::to_string(name) + "," + std::to_string(type) + ");";
    };
    add(at, at + length, 1, 1, 3);
    add(at + length / 2, at + length + 100'000, 2, 2, 3);
    if (i % 10 == 0) add(at + length + 150'000, at + length + 160'000, 3, 4, 4);
    at += 1'000'000;
  }
  execute(handle, sql + "COMMIT;");
  sqlite3_close(handle);
  return work;
}

int64_t covered(std::vector<Interval> work) {
  std::sort(work.begin(), work.end());
  int64_t sum = 0, until = 0;
  for (const auto& [from, end] : work) {
    sum += std::max<int64_t>(0, end - std::max(from, until));
    until = std::max(until, end);
  }
  return sum;
}

TEST(RocpdFiles, EachGpuIsAsBusyAsItsOwnFileSays) {
  const test::TemporaryFolder folder;
  std::vector<std::string> paths;
  std::vector<int64_t> busy;
  for (int rank = 0; rank < kRanks; ++rank) {
    paths.push_back(folder / ("rank" + std::to_string(rank) + ".rpd"));
    busy.push_back(covered(write(paths.back(), rank)));
  }
  auto source = readers::open(paths);
  ASSERT_TRUE(source) << source.error().message();
  auto assembled = job::assemble::assembled(std::move(*source));
  const std::string merged = folder / "trace.db";
  const auto written = store::write_trace_db(*assembled, merged, {}, nullptr);
  ASSERT_TRUE(written) << written.error().message();
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(merged.c_str(), &handle), SQLITE_OK);
  sqlite3_stmt* rows = nullptr;
  ASSERT_EQ(
      sqlite3_prepare_v2(handle, "SELECT gpuId, ops, busy_ns FROM busy ORDER BY gpuId", -1, &rows, nullptr),
      SQLITE_OK);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(sqlite3_step(rows), SQLITE_ROW) << rank;
    EXPECT_EQ(sqlite3_column_int64(rows, 0), rank);
    EXPECT_EQ(sqlite3_column_int64(rows, 1), kKernels * 2 + kKernels / 10);
    EXPECT_EQ(sqlite3_column_int64(rows, 2), busy[static_cast<size_t>(rank)]) << rank;
  }
  EXPECT_EQ(sqlite3_step(rows), SQLITE_DONE);
  sqlite3_finalize(rows);
  sqlite3_close(handle);
  EXPECT_TRUE(store::is_trace_db(merged)) << "its rocpd views do not make it another tool's";
  const auto detected = readers::detect(merged);
  EXPECT_TRUE(!detected || *detected == nullptr || (*detected)->name != "rocpd");
}

}  // namespace
}  // namespace lockstep::golden
