// SPDX-License-Identifier: Apache-2.0
// Opens a foreign database read-only and as one that nobody writes, so that SQLite makes no journal, lock or
// shared memory beside a file that is not ours. A file that was cut is opened a second time as such, to read
// what is left of it.
#include "readers/common/sqlite_file.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>

#include "base/foreign_sqlite.h"

namespace lockstep::readers::common {
namespace {

constexpr size_t kLongestText = 1024;
// Reading a row costs some twenty instructions and a row has some twenty bytes; the file is read a few times.
constexpr uint64_t kInstructionsPerByte = 256;
constexpr int64_t kLittle =
    100;  // thousand instructions: what a part of a file may take, however small it is

// The path as a URI: what stands for itself there and nothing else.
std::string uri_of(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  constexpr char kHex[] = "0123456789ABCDEF";
  // A question mark in a path would begin the URI's parameters otherwise.
  std::string uri = "file://";
  for (const char c : error ? path : absolute) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= '0' && byte <= '9') ||
                          std::string_view("/-._~").find(c) != std::string_view::npos;
    if (is_plain) {
      uri += c;
    } else {
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return uri + "?mode=ro&immutable=1";
}

}  // namespace

void Query::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
// _v2: statements that are still there keep the handle until they end.
void SqliteFile::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
SqliteFile::~SqliteFile() = default;

Result<bool> Query::next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return sqlite_error(sqlite3_db_handle(statement_.get()), *path_);
}

void Query::bind(int index, int64_t value) { sqlite3_bind_int64(statement_.get(), index, value); }
int64_t Query::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
bool Query::is_integer(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER;
}
bool Query::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

std::string_view Query::text(int column) const {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  // The text first, then its length: SQLite may convert the value for the first call.
  return {text, std::min(static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)), kLongestText)};
}

std::string_view Query::bytes(int column) const {
  const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, std::min(static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)), kLongestText)};
}

Result<std::unique_ptr<SqliteFile>> SqliteFile::open(const std::string& path, std::string_view prefix) {
  auto whole = open(path, prefix, false);
  if (whole) return whole;
  auto cut = open(path, prefix, true);
  // The first error is reported: the second one is about a way of reading that nobody asked for.
  return cut ? std::move(cut) : std::move(whole);
}

Result<std::unique_ptr<SqliteFile>> SqliteFile::open(const std::string& path, std::string_view prefix,
                                                     bool is_cut) {
  LOCKSTEP_ASSIGN(auto database, connect(path, is_cut));
  LOCKSTEP_TRY(database->find_tables(prefix));
  return database;
}

bool SqliteFile::has_table_like(const std::string& path, std::span<const std::string_view> prefixes) {
  for (const bool is_cut : {false, true}) {
    auto database = connect(path, is_cut);
    if (!database) continue;
    // Of the schema alone, so the budget does not grow with the file.
    (*database)->budget_ = sqlite_work(0, kInstructionsPerByte);
    const auto names = ordinary_tables((*database)->handle_.get(), path);
    if (!names) continue;
    return std::any_of(names->begin(), names->end(), [&](const std::string& name) {
      return std::any_of(prefixes.begin(), prefixes.end(),
                         [&](std::string_view prefix) { return name.starts_with(prefix); });
    });
  }
  return false;
}

Result<std::unique_ptr<SqliteFile>> SqliteFile::connect(const std::string& path, bool is_cut) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) return Error{ErrorCode::kIo, "cannot be read: " + error.message(), path};
  std::unique_ptr<SqliteFile> database(new SqliteFile());
  database->path_ = path;
  database->is_cut_ = is_cut;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(uri_of(path).c_str(), &handle,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  database->handle_.reset(handle);
  if (code != SQLITE_OK) return sqlite_error(handle, path);
  LOCKSTEP_TRY(database->harden(bytes));
  return database;
}

Result<void> SqliteFile::harden(uint64_t bytes) {
  sqlite3* const handle = handle_.get();
  budget_ = whole_budget_ = sqlite_work(bytes, kInstructionsPerByte);
  LOCKSTEP_TRY(harden_sqlite(handle, path_, &budget_));
  if (is_cut_) {
    // What lets SQLite take a file for as long as it is. Nothing is written all the same: the file is opened
    // for reading.
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
  }
  return {};
}

void SqliteFile::allow(double share) {
  budget_ = static_cast<int64_t>(static_cast<double>(whole_budget_) * std::clamp(share, 0.0, 1.0)) + kLittle;
}

Result<void> SqliteFile::find_tables(std::string_view prefix) {
  LOCKSTEP_ASSIGN(std::vector<std::string> names, ordinary_tables(handle_.get(), path_));
  for (std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    LOCKSTEP_ASSIGN(auto columns, ordinary_columns(handle_.get(), path_, name));
    if (columns.empty()) continue;
    tables_.push_back(std::move(name));
    columns_.push_back(std::move(columns));
  }
  return {};
}

bool SqliteFile::has(std::string_view table, std::initializer_list<std::string_view> columns) const {
  const auto at = std::find(tables_.begin(), tables_.end(), table);
  if (at == tables_.end()) return false;
  const std::vector<std::string>& there = columns_[static_cast<size_t>(at - tables_.begin())];
  return std::all_of(columns.begin(), columns.end(), [&](std::string_view column) {
    return std::find(there.begin(), there.end(), column) != there.end();
  });
}

Result<Query> SqliteFile::query(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_.get(), sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  Query query;
  query.statement_.reset(statement);
  query.path_ = &path_;
  if (code != SQLITE_OK) return sqlite_error(handle_.get(), path_);
  return query;
}

}  // namespace lockstep::readers::common
