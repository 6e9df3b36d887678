// SPDX-License-Identifier: Apache-2.0
// Exports differ by release, and what a table lacks is no error: a column that is not there reads as NULL, a
// table that is not there as empty. Readers ask with has() where they cannot do without.
#include "readers/nsys/tables.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/foreign_sqlite.h"
#include "readers/common/sqlite_file.h"

namespace lockstep::readers::nsys {
namespace {

// The columns that are there are asked for by name, and NULL stands in for the others, so that a reader's
// cells keep their places.
class SqliteTables : public Tables {
 public:
  SqliteTables(std::unique_ptr<common::SqliteFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  bool has(std::string_view table, std::initializer_list<std::string_view> columns) const override {
    return file_->has(table, columns);
  }

  Result<void> read(std::string_view table, std::span<const std::string_view> columns,
                    const TakeRow& take) override {
    if (!has(table, {})) return {};
    std::string sql;
    for (const std::string_view column : columns) {
      if (!sql.empty()) sql += ", ";
      sql += has(table, {column}) ? sqlite_quoted(column) : "NULL";
    }
    LOCKSTEP_ASSIGN(common::Query query, file_->query("SELECT " + sql + " FROM " + sqlite_quoted(table)));
    std::vector<Cell> row(columns.size());
    for (;;) {
      LOCKSTEP_ASSIGN(const bool more, query.next());
      if (!more) return {};
      for (size_t i = 0; i < columns.size(); ++i) row[i] = cell(query, static_cast<int>(i));
      take(row);
    }
  }

  const std::string& path() const override { return path_; }

 private:
  // SQLite's columns have no types of their own, so each value is taken as what it is stored as.
  static Cell cell(const common::Query& query, int column) {
    if (query.is_null(column)) return {};
    if (query.is_integer(column)) return {Cell::Kind::kInteger, query.integer(column), {}};
    return {Cell::Kind::kBytes, 0, query.bytes(column)};
  }

  std::unique_ptr<common::SqliteFile> file_;
  std::string path_;
};

// A file is opened when it is asked for, and anew each time: an export holds many that nobody asks for.
class ParquetTables : public Tables {
 public:
  explicit ParquetTables(const std::vector<std::string>& paths) {
    path_ = std::filesystem::path(paths.front()).parent_path().string();
    // `nsys export --type parquetdir` names each file after its table.
    for (const std::string& path : paths) files_.emplace(std::filesystem::path(path).stem().string(), path);
  }

  bool has(std::string_view table, std::initializer_list<std::string_view> columns) const override {
    const auto at = files_.find(table);
    if (at == files_.end()) return false;
    const auto file = ParquetFile::open(at->second);
    return file && std::all_of(columns.begin(), columns.end(), [&](std::string_view column) {
             return std::any_of(file->columns().begin(), file->columns().end(),
                                [&](const ParquetColumn& of) { return of.name == column; });
           });
  }

  Result<void> read(std::string_view table, std::span<const std::string_view> columns,
                    const TakeRow& take) override {
    const auto at = files_.find(table);
    if (at == files_.end()) return {};
    LOCKSTEP_ASSIGN(const ParquetFile file, ParquetFile::open(at->second));
    return file.read(columns, take);
  }

  const std::string& path() const override { return path_; }

 private:
  std::map<std::string, std::string, std::less<>> files_;  // by table
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<Tables>> open_sqlite(const std::string& path) {
  LOCKSTEP_ASSIGN(auto file, common::SqliteFile::open(path, ""));
  return std::unique_ptr<Tables>(std::make_unique<SqliteTables>(std::move(file), path));
}

std::unique_ptr<Tables> open_parquet(const std::vector<std::string>& paths) {
  return std::make_unique<ParquetTables>(paths);
}

}  // namespace lockstep::readers::nsys
