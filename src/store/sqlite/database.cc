// SPDX-License-Identifier: Apache-2.0
// A connection that reads is hardened before its first statement (base/foreign_sqlite.h); one that writes
// makes a new file of our own and is not.
#include "store/sqlite/database.h"

#include <algorithm>
#include <filesystem>

#include "base/foreign_sqlite.h"

namespace lockstep::store::sqlite {
namespace {

// A row costs three instructions and two for each column, which takes a byte or more, and an index of the
// schema as much again.
constexpr uint64_t kInstructionsPerByte = 16;

}  // namespace

std::string_view Statement::text(int column) const {
  // The text first and its size second: SQLite may convert the value, and the size is that of the converted
  // one.
  const unsigned char* bytes = sqlite3_column_text(statement_.get(), column);
  auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes ? std::string_view(reinterpret_cast<const char*>(bytes), size) : std::string_view();
}

std::string_view Statement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes ? std::string_view(static_cast<const char*>(bytes), size) : std::string_view();
}

Result<bool> Statement::step() {
  int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->error("cannot read");
}

Result<uint64_t> Statement::run() {
  int code = sqlite3_step(statement_.get());
  if (code != SQLITE_DONE) {
    Error error = database_->error("cannot write");
    sqlite3_reset(statement_.get());
    return error;
  }
  sqlite3_reset(statement_.get());
  return static_cast<uint64_t>(sqlite3_changes64(database_->handle()));
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, Access access) {
  std::unique_ptr<Database> database(new Database(path));
  int flags = SQLITE_OPEN_READONLY;
  std::string name = path;
  if (access == Access::kCreate) {
    // SQLite refuses a link anywhere in the path: those that lead to the folder are the user's own.
    // A name that can be guessed may have been made a link by somebody else.
    flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW;
    std::error_code stays;
    const std::filesystem::path folder =
        std::filesystem::canonical(std::filesystem::absolute(path).parent_path(), stays);
    if (!stays) name = folder / std::filesystem::path(path).filename();
  }
  sqlite3* handle = nullptr;
  // Each connection belongs to one thread, so SQLite need not lock. It may give a handle even where opening
  // failed: the error text is in it, and it must be closed.
  int code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database->handle_.reset(handle);
  if (code != SQLITE_OK) return database->error("cannot open");
  if (access == Access::kRead) LOCKSTEP_TRY(database->harden());
  return database;
}

Result<void> Database::harden() {
  std::error_code no_size;
  const uint64_t bytes = std::filesystem::file_size(path_, no_size);
  work_left_ = whole_work_ = sqlite_work(no_size ? 0 : bytes, kInstructionsPerByte);
  LOCKSTEP_TRY(harden_sqlite(handle(), path_, &work_left_));
  // Sorted, as columns() searches in it.
  LOCKSTEP_ASSIGN(tables_, ordinary_tables(handle(), path_));
  return {};
}

Result<std::vector<std::string>> Database::columns(std::string_view table) const {
  if (!std::binary_search(tables_.begin(), tables_.end(), table)) return std::vector<std::string>();
  return ordinary_columns(handle(), path_, table);
}

Result<void> Database::execute(const std::string& sql) const {
  if (sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return error("cannot write");
  return {};
}

Result<Statement> Database::prepare(const std::string& sql) const {
  // Each statement gets the whole of it: the bound is on what one of them may cost, by the size of the file.
  work_left_ = whole_work_;
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle(), sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr) !=
      SQLITE_OK) {
    return error("cannot prepare `" + sql.substr(0, 80) + "`");
  }
  return Statement(statement, *this);
}

Result<int64_t> Database::integer(const std::string& sql) const {
  LOCKSTEP_ASSIGN(Statement statement, prepare(sql));
  LOCKSTEP_ASSIGN(bool row, statement.step());
  if (!row) return Error{ErrorCode::kInvalidInput, "nothing found by `" + sql + "`", path_};
  return statement.integer(0);
}

Result<void> Database::close() {
  // Unlike sqlite3_close_v2, it fails while a statement is open, instead of leaving a connection that nobody
  // holds.
  if (sqlite3_close(handle_.get()) != SQLITE_OK) return error("cannot close");
  static_cast<void>(handle_.release());  // sqlite3_close has freed it
  return {};
}

Error Database::error(std::string_view doing) const {
  int code = handle() ? sqlite3_errcode(handle()) : SQLITE_NOMEM;
  std::string text(doing);
  text += std::string(": ") + (handle() ? sqlite3_errmsg(handle()) : "out of memory");
  // The low byte is the error; the rest says more exactly where, which the text says too.
  switch (code & 0xff) {
    case SQLITE_FULL:
      return {ErrorCode::kIo, text + "; free space on that file system or name another output", path_};
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return {ErrorCode::kPermission, text, path_};
    case SQLITE_IOERR:
      return {ErrorCode::kIo, text, path_};
    case SQLITE_INTERRUPT:
      return sqlite_error(handle(), path_);
    default:
      return {ErrorCode::kInvalidInput, text, path_};
  }
}

}  // namespace lockstep::store::sqlite
