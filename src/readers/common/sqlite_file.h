// SPDX-License-Identifier: Apache-2.0
// A SQLite file that somebody else wrote, read without trusting it (base/foreign_sqlite.h), and immutable: no
// journal is replayed, no lock taken. A file that is shorter than it says is read as far as it goes. Belongs
// to one thread.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace lockstep::readers::common {

class Query {
 public:
  // Whether there is a row. An error: the file is damaged from here on, or leads in circles.
  Result<bool> next();
  void bind(int index, int64_t value);
  int64_t integer(int column) const;        // 0 for what is none
  std::string_view text(int column) const;  // at most 1 KiB of it; until the next call
  // As it lies there, also of a column that is called text; at most 1 KiB; until the next call.
  std::string_view bytes(int column) const;
  bool is_null(int column) const;
  bool is_integer(int column) const;

 private:
  friend class SqliteFile;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const std::string* path_ = nullptr;
};

class SqliteFile {
 public:
  // Offers the tables whose names begin so.
  static Result<std::unique_ptr<SqliteFile>> open(const std::string& path, std::string_view prefix);
  // Whether it has a table whose name begins so: what a look at the file costs, and no more. False where it
  // cannot be read.
  static bool has_table_like(const std::string& path, std::span<const std::string_view> prefixes);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  // It is shorter than it says.
  bool is_cut() const { return is_cut_; }
  // Ordinary tables that are offered, by name; none that is a view or virtual, or computes a column.
  const std::vector<std::string>& tables() const { return tables_; }
  // A table and all these columns of it.
  bool has(std::string_view table, std::initializer_list<std::string_view> columns) const;
  Result<Query> query(const std::string& sql) const;
  // From here on, this part (0 to 1) of the work that a file of its size can ask for, and a little. Without a
  // call: all of it.
  void allow(double share);

 private:
  SqliteFile() = default;
  static Result<std::unique_ptr<SqliteFile>> open(const std::string& path, std::string_view prefix,
                                                  bool is_cut);
  static Result<std::unique_ptr<SqliteFile>> connect(const std::string& path, bool is_cut);
  Result<void> harden(uint64_t bytes);
  Result<void> find_tables(std::string_view prefix);

  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
  std::string path_;
  std::vector<std::string> tables_;
  std::vector<std::vector<std::string>> columns_;  // by table
  bool is_cut_ = false;
  // Instructions, in thousands: that may still be run, over all queries; and that a file of this size can ask
  // for.
  int64_t budget_ = 0, whole_budget_ = 0;
};

}  // namespace lockstep::readers::common
