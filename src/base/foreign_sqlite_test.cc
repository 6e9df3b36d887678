// SPDX-License-Identifier: Apache-2.0
#include "base/foreign_sqlite.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>

namespace lockstep {
namespace {

class ForeignSqlite : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(sqlite3_open(":memory:", &handle_), SQLITE_OK); }
  void TearDown() override { sqlite3_close(handle_); }
  std::string execute(const std::string& sql) {
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return "";
    return sqlite_error(handle_, "x.db").text;
  }
  void harden(int64_t work) {
    work_ = work;
    ASSERT_TRUE(harden_sqlite(handle_, "x.db", &work_));
  }
  sqlite3* handle_ = nullptr;
  int64_t work_ = 0;
};

TEST_F(ForeignSqlite, OffersOrdinaryTablesAndTheirColumns) {
  ASSERT_EQ(
      execute("CREATE TABLE a(id INTEGER PRIMARY KEY, x); CREATE TABLE c(id, x AS (zeroblob(900000000)));"
              "CREATE VIEW v AS SELECT * FROM a; CREATE VIRTUAL TABLE f USING fts5(text)"),
      "");
  harden(sqlite_work(0, 1));
  const auto tables = ordinary_tables(handle_, "x.db");
  ASSERT_TRUE(tables) << tables.error().message();
  EXPECT_EQ(std::count(tables->begin(), tables->end(), "a"), 1);
  EXPECT_EQ(std::count(tables->begin(), tables->end(), "v"), 0);
  EXPECT_EQ(std::count(tables->begin(), tables->end(), "f"), 0);
  EXPECT_EQ(*ordinary_columns(handle_, "x.db", "a"), (std::vector<std::string>{"id", "x"}));
  EXPECT_TRUE(ordinary_columns(handle_, "x.db", "c")->empty()) << "computes a column";
}

TEST_F(ForeignSqlite, RunsNoViewsTriggersOrWrites) {
  ASSERT_EQ(execute("CREATE TABLE a(id INTEGER PRIMARY KEY); CREATE VIEW v AS SELECT * FROM a"), "");
  harden(sqlite_work(0, 1));
  for (const char* sql :
       {"SELECT * FROM v", "INSERT INTO a VALUES (1)", "DROP TABLE a", "ATTACH 'y.db' AS y"})
    EXPECT_NE(execute(sql), "") << sql;
}

TEST_F(ForeignSqlite, RefusesWhatIsTooLong) {
  harden(sqlite_work(0, 1));
  EXPECT_EQ(execute("SELECT zeroblob(1000000)"), "");
  EXPECT_NE(execute("SELECT zeroblob(900000000)"), "");
}

TEST_F(ForeignSqlite, EndsWhatTakesMoreWorkThanThereIs) {
  const std::string endless =
      "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r WHERE n < 0";
  harden(100);
  EXPECT_NE(execute(endless).find("longer than its size allows"), std::string::npos);
  EXPECT_GT(sqlite_work(1 << 30, 16), sqlite_work(0, 16));
  EXPECT_GT(sqlite_work(~uint64_t{0}, 16), 0);
}

TEST(SqliteNames, AreQuoted) { EXPECT_EQ(sqlite_quoted("a\"b"), "\"a\"\"b\""); }

}  // namespace
}  // namespace lockstep
