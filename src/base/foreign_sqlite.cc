// SPDX-License-Identifier: Apache-2.0
// A hostile database is stopped by two means. Settings and limits take away what a schema could run: views,
// triggers, virtual tables, extensions, and functions of its own. A budget of instructions, made from the
// file's size, takes away time: a B-tree whose pages lead in circles is well formed to SQLite, and each of
// its steps is short, so neither its own checks nor a timeout per statement would end it on a slow machine
// and spare a large file on a fast one.
#include "base/foreign_sqlite.h"

#include <sqlite3.h>

#include <algorithm>
#include <memory>

namespace lockstep {
namespace {

constexpr size_t kMostTables = 4096;
constexpr int kStepInstructions = 1000;
constexpr uint64_t kFewInstructions = 10'000'000;

struct Setting {
  int id, value;
};
constexpr Setting kLimits[] = {{SQLITE_LIMIT_LENGTH, 16 << 20},
                               {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
                               {SQLITE_LIMIT_COLUMN, 256},
                               {SQLITE_LIMIT_EXPR_DEPTH, 100},
                               {SQLITE_LIMIT_COMPOUND_SELECT, 64},
                               {SQLITE_LIMIT_VDBE_OP, 25'000},
                               {SQLITE_LIMIT_FUNCTION_ARG, 8},
                               {SQLITE_LIMIT_ATTACHED, 0},
                               {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
                               {SQLITE_LIMIT_VARIABLE_NUMBER, 16},
                               {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                               {SQLITE_LIMIT_WORKER_THREADS, 0}};
// DQS: else SQLite takes the quoted name of a missing column for a text of these letters.
constexpr Setting kSettings[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                 {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                 {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                 {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                 {SQLITE_DBCONFIG_DQS_DDL, 0},
                                 {SQLITE_DBCONFIG_DQS_DML, 0},
                                 {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}};
// mmap_size: a file that is cut while it is mapped would end the program with SIGBUS.
constexpr const char* kPragmas[] = {"PRAGMA cell_size_check=ON", "PRAGMA mmap_size=0",
                                    "PRAGMA temp_store=MEMORY", "PRAGMA query_only=ON",
                                    "PRAGMA automatic_index=OFF"};

// SQLite ends the statement with SQLITE_INTERRUPT where this is not 0.
int spend(void* work) { return --*static_cast<int64_t*>(work) <= 0 ? 1 : 0; }

// Calls take(statement) for each row.
template <class Take>
Result<void> for_rows(sqlite3* handle, const std::string& path, const std::string& sql, Take&& take) {
  sqlite3_stmt* raw = nullptr;
  const int prepared = sqlite3_prepare_v2(handle, sql.c_str(), static_cast<int>(sql.size()), &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
  if (prepared != SQLITE_OK) return sqlite_error(handle, path);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    if (!take(raw)) return {};
  }
  if (code != SQLITE_DONE) return sqlite_error(handle, path);
  return {};
}

std::string text_of(sqlite3_stmt* statement, int column) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace

int64_t sqlite_work(uint64_t bytes, uint64_t instructions_per_byte) {
  const uint64_t instructions = std::min(bytes, uint64_t{1} << 50) * instructions_per_byte + kFewInstructions;
  return static_cast<int64_t>(instructions / kStepInstructions);
}

Result<void> harden_sqlite(sqlite3* handle, const std::string& path, int64_t* work_left) {
  for (const Setting& setting : kSettings) sqlite3_db_config(handle, setting.id, setting.value, nullptr);
  for (const Setting& limit : kLimits) sqlite3_limit(handle, limit.id, limit.value);
  sqlite3_progress_handler(handle, kStepInstructions, spend, work_left);
  for (const char* pragma : kPragmas) {
    if (sqlite3_exec(handle, pragma, nullptr, nullptr, nullptr) != SQLITE_OK)
      return sqlite_error(handle, path);
  }
  return {};
}

Result<std::vector<std::string>> ordinary_tables(sqlite3* handle, const std::string& path) {
  std::vector<std::string> names;
  // A virtual table has no root page.
  LOCKSTEP_TRY(for_rows(handle, path,
                        "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name",
                        [&](sqlite3_stmt* row) {
                          names.push_back(text_of(row, 0));
                          return names.size() < kMostTables;
                        }));
  return names;
}

Result<std::vector<std::string>> ordinary_columns(sqlite3* handle, const std::string& path,
                                                  std::string_view table) {
  std::vector<std::string> columns;
  bool computes = false;
  LOCKSTEP_TRY(
      for_rows(handle, path, "PRAGMA table_xinfo(" + sqlite_quoted(table) + ")", [&](sqlite3_stmt* row) {
        // Column 6 of table_xinfo is `hidden`: 2 or 3 for a computed column.
        computes = computes || sqlite3_column_int64(row, 6) != 0;
        columns.push_back(text_of(row, 1));
        return true;
      }));
  if (computes) columns.clear();
  return columns;
}

Error sqlite_error(sqlite3* handle, const std::string& path) {
  const bool endless = handle != nullptr && sqlite3_errcode(handle) == SQLITE_INTERRUPT;
  const std::string why = handle == nullptr ? "out of memory" : sqlite3_errmsg(handle);
  return {ErrorCode::kInvalidInput,
          endless ? "is damaged: reading it takes longer than its size allows" : "cannot be read: " + why,
          path};
}

std::string sqlite_quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    text += c;
    if (c == '"') text += c;
  }
  return text + '"';
}

}  // namespace lockstep
