// SPDX-License-Identifier: Apache-2.0
#include "store/query.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"
#include "model/testing/synthetic_run.h"
#include "store/store.h"

namespace lockstep::store {
namespace {

class QueryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model::testing::SyntheticRun run(model::testing::SyntheticOptions{});
    ASSERT_TRUE(write_trace_db(run, path, {}, nullptr));
  }
  Result<QueryAnswer> ask(const std::string& sql, const QueryLimits& limits = {}) const {
    return query(path, sql, limits);
  }
  std::string refusal(const std::string& sql) const {
    const auto answer = ask(sql);
    return answer ? "answered" : answer.error().text;
  }
  const TemporaryDirectory folder = std::move(TemporaryDirectory::make().value());
  const std::string path = folder.path() + "/trace.db";
};

TEST_F(QueryTest, AnswersFromTablesAndViews) {
  const auto answer = ask("SELECT count(*) AS n, 1.5, NULL, 'text', x'00ff' FROM ops;");
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->columns[0], "n");
  ASSERT_EQ(answer->rows.size(), 1u);
  const auto& row = answer->rows[0];
  EXPECT_GT(std::get<int64_t>(row[0]), 0);
  EXPECT_EQ(std::get<double>(row[1]), 1.5);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(row[2]));
  EXPECT_EQ(std::get<std::string>(row[3]), "text");
  EXPECT_EQ(std::get<std::string>(row[4]), "x'00ff'");
  EXPECT_FALSE(answer->more);
}

TEST_F(QueryTest, BoundsRowsAndBytes) {
  auto answer = ask("SELECT id FROM ops", {.rows = 3});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->rows.size(), 3u);
  EXPECT_TRUE(answer->more);
  answer = ask("SELECT hex(zeroblob(1000)) FROM ops", {.bytes = 5000});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->rows.size(), 3u);  // the row that passes the bound is the last
  EXPECT_TRUE(answer->more);
}

TEST_F(QueryTest, BoundsTime) {
  const auto answer =
      ask("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
          {.time = std::chrono::milliseconds(20)});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().text, "the query took more than 20 ms; narrow it");
}

TEST_F(QueryTest, RefusesAllButOneSelect) {
  const std::string other = folder.path() + "/other.db";
  for (const std::string& sql :
       {std::string("DELETE FROM process"), std::string("CREATE TABLE t(a)"),
        std::string("CREATE TEMP TABLE t(a)"), "ATTACH '" + other + "' AS o", "VACUUM INTO '" + other + "'",
        std::string("PRAGMA user_version = 7"), std::string("PRAGMA query_only = OFF"), std::string("BEGIN"),
        std::string("SELECT load_extension('x')"), std::string("UPDATE process SET pid = 1"),
        std::string("EXPLAIN DELETE FROM process")})
    EXPECT_EQ(refusal(sql).substr(0, 4), sql.find("load") == std::string::npos ? "only" : "SQL:") << sql;
  EXPECT_EQ(refusal("SELECT 1; DELETE FROM process"), "one statement at a time");
  EXPECT_EQ(refusal(" ; -- nothing"), "the query is empty");
  EXPECT_EQ(refusal("SELEC 1").substr(0, 5), "SQL: ");
  EXPECT_EQ(refusal(std::string("SELECT 1\0, 2", 12)), "the query holds a NUL");
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(QueryTest, RefusesWhatIsNoTraceDb) {
  const std::string text = folder.path() + "/text";
  std::ofstream(text) << "SQLite format 3";
  for (const std::string& name : {text, folder.path(), folder.path() + "/absent"})
    EXPECT_FALSE(query(name, "SELECT 1", {})) << name;
}

}  // namespace
}  // namespace lockstep::store
