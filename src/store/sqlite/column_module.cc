// SPDX-License-Identifier: Apache-2.0
// Shows the model's columns to SQLite as a read-only virtual table, so that one statement copies a whole
// table. It only scans: there is nothing to look up, and best_index offers SQLite no choice.
#include "store/sqlite/column_module.h"

#include <new>
#include <string>

namespace lockstep::store::sqlite {
namespace {

struct Source {
  const TableLayout* layout;
  const BoundTable* table;
};
struct VirtualTable {
  sqlite3_vtab base{};
  const BoundTable* table = nullptr;
};
struct Cursor {
  sqlite3_vtab_cursor base{};
  const BoundTable* table = nullptr;
  size_t row = 0;
};
// SQLite hands back pointers to `base`, which are cast: it must be the first member of both structs.
Cursor* cursor_of(sqlite3_vtab_cursor* base) { return reinterpret_cast<Cursor*>(base); }

int connect(sqlite3* handle, void* aux, int, const char* const*, sqlite3_vtab** out, char**) {
  auto* source = static_cast<const Source*>(aux);
  std::string sql = "CREATE TABLE source(id INTEGER";
  for (const auto* columns : {&source->layout->columns, &source->layout->derived}) {
    for (const ColumnLayout& column : *columns) sql.append(",").append(quoted(column.name));
  }
  auto* table = new (std::nothrow) VirtualTable;
  if (!table) return SQLITE_NOMEM;
  table->table = source->table;
  *out = &table->base;
  return sqlite3_declare_vtab(handle, (sql + ")").c_str());
}

int disconnect(sqlite3_vtab* table) {
  delete reinterpret_cast<VirtualTable*>(table);
  return SQLITE_OK;
}

// There is one way to read it: from the first row to the last.
int best_index(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; }

int open_cursor(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  auto* cursor = new (std::nothrow) Cursor;
  if (!cursor) return SQLITE_NOMEM;
  cursor->table = reinterpret_cast<VirtualTable*>(table)->table;
  *out = &cursor->base;
  return SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete cursor_of(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  cursor_of(cursor)->row = 0;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
  ++cursor_of(cursor)->row;
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* cursor) { return cursor_of(cursor)->row >= cursor_of(cursor)->table->rows; }

// Called once for each value of the run.
int column_value(sqlite3_vtab_cursor* base, sqlite3_context* context, int index) {
  const Cursor* cursor = cursor_of(base);
  if (index == 0) {
    sqlite3_result_int64(context, cursor->table->first_id + static_cast<int64_t>(cursor->row));
    return SQLITE_OK;
  }
  // A result that is not set is NULL.
  if (const auto value = stored_value(cursor->table->columns[static_cast<size_t>(index) - 1], cursor->row))
    sqlite3_result_int64(context, *value);
  return SQLITE_OK;
}

// SQLite requires it of every module, though the INSERT takes the column `id`.
int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
  *id = cursor_of(cursor)->table->first_id + static_cast<int64_t>(cursor_of(cursor)->row);
  return SQLITE_OK;
}

const sqlite3_module kModule = [] {
  sqlite3_module module{};
  module.xConnect = connect;  // no xCreate: the table exists without CREATE VIRTUAL TABLE
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = at_end;
  module.xColumn = column_value;
  module.xRowid = row_id;
  return module;
}();

}  // namespace

Result<void> register_source(const Database& database, const TableLayout& layout, const BoundTable* table) {
  std::string name = "source_" + std::string(layout.name);
  // SQLite frees it, also if registering fails.
  auto* source = new Source{&layout, table};
  int code = sqlite3_create_module_v2(database.handle(), name.c_str(), &kModule, source,
                                      [](void* aux) { delete static_cast<Source*>(aux); });
  if (code != SQLITE_OK) return database.error("cannot register " + name);
  return {};
}

}  // namespace lockstep::store::sqlite
