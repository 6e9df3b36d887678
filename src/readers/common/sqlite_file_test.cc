// SPDX-License-Identifier: Apache-2.0
#include "readers/common/sqlite_file.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep::readers::common {
namespace {

class SqliteFileTest : public ::testing::Test {
 protected:
  void write(const std::string& sql) const {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &handle), SQLITE_OK);
    char* why = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
    sqlite3_free(why);
    sqlite3_close(handle);
  }
  std::unique_ptr<SqliteFile> open() const {
    auto database = SqliteFile::open(path_, "rocpd_");
    EXPECT_TRUE(database) << database.error().message();
    return database ? std::move(*database) : nullptr;
  }
  static int64_t rows(const SqliteFile& database, const std::string& sql, std::string* error = nullptr) {
    auto query = database.query(sql);
    if (!query) {
      if (error != nullptr) *error = query.error().text;
      return -1;
    }
    int64_t rows = 0;
    for (;;) {
      const auto more = query->next();
      if (!more && error != nullptr) *error = more.error().text;
      if (!more || !*more) return rows;
      ++rows;
    }
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "lockstep rocpd?#%.db";
};

TEST_F(SqliteFileTest, OffersOrdinaryTablesAlone) {
  write(
      "CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY, start INTEGER);"
      "CREATE TABLE rocpd_computed(id INTEGER PRIMARY KEY, x AS (printf('%d', id)));"
      "CREATE VIEW rocpd_view AS SELECT * FROM rocpd_op;"
      "CREATE VIRTUAL TABLE rocpd_virtual USING fts5(text);"
      "CREATE TABLE other(id);");
  const auto database = open();
  EXPECT_TRUE(database->has("rocpd_op", {"id", "start"}));
  EXPECT_FALSE(database->has("rocpd_op", {"id", "gpuId"}));
  for (const char* table : {"rocpd_computed", "rocpd_view", "rocpd_virtual", "other", "sqlite_schema"})
    EXPECT_EQ(std::count(database->tables().begin(), database->tables().end(), table), 0) << table;
  EXPECT_EQ(rows(*database, "SELECT * FROM rocpd_view"), -1) << "views are off";
}

TEST_F(SqliteFileTest, WritesNothing) {
  write("CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY); INSERT INTO rocpd_op VALUES(1);");
  const auto before = std::filesystem::last_write_time(path_);
  const auto database = open();
  std::string error;
  for (const char* sql : {"INSERT INTO rocpd_op VALUES(2)", "DROP TABLE rocpd_op", "ATTACH 'x.db' AS x",
                          "SELECT load_extension('x')"}) {
    error.clear();
    rows(*database, sql, &error);
    EXPECT_FALSE(error.empty()) << sql;
  }
  EXPECT_EQ(std::filesystem::last_write_time(path_), before);
  EXPECT_FALSE(std::filesystem::exists(path_ + "-journal"));
}

TEST_F(SqliteFileTest, EndsWhatWouldRunForEver) {
  write("CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY); INSERT INTO rocpd_op VALUES(1);");
  const auto database = open();
  std::string error;
  rows(*database,
       "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r WHERE n < 0", &error);
  EXPECT_NE(error.find("longer than its size allows"), std::string::npos) << error;
}

TEST_F(SqliteFileTest, DoesNoMoreThanItsPartOfTheWork) {
  write("CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY); INSERT INTO rocpd_op VALUES(1);");
  const auto database = open();
  const std::string count =
      "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 100000) SELECT n FROM r";
  std::string error;
  database->allow(0.01);
  rows(*database, count, &error);
  EXPECT_NE(error.find("longer than its size allows"), std::string::npos) << error;
  error.clear();
  database->allow(1);
  EXPECT_EQ(rows(*database, count, &error), 100'000) << error;
}

TEST_F(SqliteFileTest, ReadsACutFileAsFarAsItGoes) {
  write(
      "CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY, text TEXT);"
      "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 5000)"
      "INSERT INTO rocpd_op SELECT n, 'some text that fills the pages of this file' FROM r;");
  EXPECT_FALSE(open()->is_cut());
  const uint64_t bytes = std::filesystem::file_size(path_);
  std::filesystem::resize_file(path_, bytes / 2 / 4096 * 4096);
  const auto database = open();
  ASSERT_NE(database, nullptr);
  EXPECT_TRUE(database->is_cut());
  std::string error;
  const int64_t kept = rows(*database, "SELECT id FROM rocpd_op NOT INDEXED", &error);
  EXPECT_GT(kept, 1500);
  EXPECT_LT(kept, 3500);
  EXPECT_FALSE(error.empty());
}

TEST_F(SqliteFileTest, IsAnErrorWhereThereIsNone) {
  EXPECT_FALSE(SqliteFile::open(path_, "rocpd_"));
  std::ofstream(path_) << "SQLite format 3";
  EXPECT_FALSE(SqliteFile::open(path_, "rocpd_"));
  std::ofstream(path_)
      << "no database at all, but rather long, so that it has as many bytes as a header has .........";
  EXPECT_FALSE(SqliteFile::open(path_, "rocpd_"));
}

}  // namespace
}  // namespace lockstep::readers::common
