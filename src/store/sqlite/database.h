// SPDX-License-Identifier: Apache-2.0
// The little of SQLite that trace.db needs, with its errors as Result. A Database and its Statements belong
// to one thread. Error texts name the file and say what SQLite said.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::store::sqlite {

class Database;

// One prepared statement, to be run any number of times. What a bind refuses (an index past the last
// parameter) shows nowhere: statements are our own. Columns and parameters count as SQLite's do, columns from
// 0 and parameters from 1.
class Statement {
 public:
  // True if there is a row, false when done. Views of a row's text and blob hold until the next step.
  Result<bool> step();
  // Runs to the end (no rows wanted) and makes ready for the next run. Returns the number of rows changed.
  Result<uint64_t> run();
  void reset() { sqlite3_reset(statement_.get()); }
  void bind(int index, int64_t value) { sqlite3_bind_int64(statement_.get(), index, value); }
  // The text must live until the next run or bind.
  void bind(int index, std::string_view text) {
    sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  void bind_blob(int index, std::string_view bytes) {
    sqlite3_bind_blob64(statement_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC);
  }
  void bind_null(int index) { sqlite3_bind_null(statement_.get(), index); }
  bool is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  std::string_view text(int column) const;
  std::string_view blob(int column) const;
  int columns() const { return sqlite3_column_count(statement_.get()); }

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Statement(sqlite3_stmt* statement, const Database& database)
      : statement_(statement), database_(&database) {}
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const Database* database_;  // outlives its statements
};

// One connection to one file. Statements of it must end before it does.
class Database {
 public:
  // kCreate: a file of ours, which is no link. kRead: a file that somebody else may have written
  // (base/foreign_sqlite.h). Each statement may take the work that a file of this size can ask for.
  enum class Access { kCreate, kRead };
  static Result<std::unique_ptr<Database>> open(const std::string& path, Access access);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  // Any number of statements that give no rows; stops at the first that fails.
  Result<void> execute(const std::string& sql) const;
  // The first statement of `sql`. With kRead, the work that is left to statements starts anew, for all of the
  // connection.
  Result<Statement> prepare(const std::string& sql) const;
  // The first column of the first row of a query.
  Result<int64_t> integer(const std::string& sql) const;
  // Closes, and says if that failed; the destructor does not.
  Result<void> close();
  sqlite3* handle() const { return handle_.get(); }
  Error error(std::string_view doing) const;
  // Columns of an ordinary table; none if there is none of this name, or if it is a view, virtual, or
  // computes a column.
  Result<std::vector<std::string>> columns(std::string_view table) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  explicit Database(std::string path) : path_(std::move(path)) {}
  Result<void> harden();
  std::string path_;
  int64_t whole_work_ = 0;         // kRead; see base/foreign_sqlite.h
  mutable int64_t work_left_ = 0;  // of the newest statement
  std::vector<std::string> tables_;
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace lockstep::store::sqlite
