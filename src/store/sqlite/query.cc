// SPDX-License-Identifier: Apache-2.0
// Runs one SELECT of somebody who is not trusted. A filter of words in SQL text can be evaded; SQLite's
// authorizer sees what the compiled statement would do, so it decides: reading and computing pass, everything
// else is refused. Time is bounded as well, since a join of a table with itself needs no privilege.
#include "store/query.h"

#include <algorithm>
#include <memory>

#include "base/hex.h"
#include "store/sqlite/database.h"
#include "store/store.h"

namespace lockstep::store {
namespace {

using sqlite::Database;
using Clock = std::chrono::steady_clock;

constexpr size_t kBlobBytes = 64;
constexpr int kInstructionsPerLook = 10'000;

// Reading, and computing with what is read: nothing that names another file, changes one or a setting.
int authorize(void*, int action, const char*, const char* name, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    // The other built-in functions only compute. This one would run code of a file, though the hardened
    // handle refuses it too.
    case SQLITE_FUNCTION:
      return std::string_view(name == nullptr ? "" : name) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

// Called by SQLite every kInstructionsPerLook instructions; anything but 0 ends the statement with
// SQLITE_INTERRUPT.
int is_late(void* deadline) { return Clock::now() > *static_cast<Clock::time_point*>(deadline) ? 1 : 0; }

std::string hex_of(std::string_view blob) {
  return "x'" + hex_of_bytes(blob.substr(0, kBlobBytes)) + (blob.size() > kBlobBytes ? "...'" : "'");
}

Cell cell_of(sqlite3_stmt* statement, int column) {
  const auto size = [&] { return static_cast<size_t>(sqlite3_column_bytes(statement, column)); };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return static_cast<int64_t>(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    // sqlite3_column_text() comes before the size, and gives nullptr where memory runs out.
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return text == nullptr ? std::string() : std::string(text, size());
    }
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
      return hex_of(bytes == nullptr ? std::string_view() : std::string_view(bytes, size()));
    }
    default:
      return std::monostate();
  }
}

}  // namespace

Result<QueryAnswer> query(const std::string& path, const std::string& sql, const QueryLimits& limits) {
  // SQLite stops at a NUL: what stands behind it would not be looked at below.
  if (sql.find('\0') != std::string::npos) return usage_error("the query holds a NUL");
  if (!is_trace_db(path)) return usage_error("is not a trace.db; `lockstep merge` makes one", path);
  LOCKSTEP_ASSIGN(const std::unique_ptr<Database> database, Database::open(path, Database::Access::kRead));
  sqlite3* const handle = database->handle();
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 1, nullptr);  // trace.db's own are what people ask
  sqlite3_set_authorizer(handle, authorize, nullptr);
  Clock::time_point deadline = Clock::now() + limits.time;
  // A connection has one such handler: this one takes the place of the bound on work by the file's size.
  sqlite3_progress_handler(handle, kInstructionsPerLook, is_late, &deadline);

  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int prepared = sqlite3_prepare_v2(handle, sql.c_str(), static_cast<int>(sql.size()), &raw, &rest);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
  if (prepared == SQLITE_AUTH) return usage_error("only SELECT is allowed");
  if (prepared != SQLITE_OK) return usage_error(std::string("SQL: ") + sqlite3_errmsg(handle));
  // Comments alone compile to nothing.
  if (raw == nullptr) return usage_error("the query is empty");
  // The authorizer has refused all that writes; this holds even if it missed something.
  if (sqlite3_stmt_readonly(raw) == 0) return usage_error("only SELECT is allowed");
  if (std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos)
    return usage_error("one statement at a time");

  QueryAnswer answer;
  const int columns = sqlite3_column_count(raw);
  for (int i = 0; i < columns; ++i) {
    const char* name = sqlite3_column_name(raw, i);
    answer.columns.emplace_back(name == nullptr ? "" : name);
  }
  size_t bytes = 0;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    // One row more is asked for than is given, so that an answer that just fits is not called cut.
    answer.more = answer.rows.size() >= limits.rows || bytes > limits.bytes;
    if (answer.more) return answer;
    std::vector<Cell>& row = answer.rows.emplace_back();
    for (int i = 0; i < columns; ++i) {
      row.push_back(cell_of(raw, i));
      if (const auto* text = std::get_if<std::string>(&row.back())) bytes += text->size();
      bytes += sizeof(int64_t);
    }
  }
  if (code == SQLITE_INTERRUPT)
    return usage_error("the query took more than " + std::to_string(limits.time.count()) + " ms; narrow it");
  if (code != SQLITE_DONE) return usage_error(std::string("SQL: ") + sqlite3_errmsg(handle));
  return answer;
}

}  // namespace lockstep::store
