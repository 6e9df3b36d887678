// SPDX-License-Identifier: Apache-2.0
// A store is shared by many pushers, of several versions, and belongs to others. So tables are only added to:
// missing ones are made, columns of newer schemas are added, and nothing else is changed. A table of another
// shape is an error before the first row is sent. What is there is asked for rather than remembered, as two
// pushers may migrate at once.
#include "store/clickhouse/make_tables.h"

#include <map>
#include <optional>

#include "store/clickhouse/wire/sql_text.h"

namespace lockstep::store::clickhouse {
namespace {

using FoundColumns = std::map<std::string, std::string>;  // their types
using FoundTables = std::map<std::string, FoundColumns>;

// What is there may have been made by another version of Lockstep: more columns do no harm, as they have
// defaults; others do.
Result<void> check_columns(const FoundColumns& found, const Table& table, const std::string& database) {
  const auto check = [&](std::string_view name, ColumnType type) -> Result<void> {
    const auto column = found.find(std::string(name));
    if (column != found.end() && column->second == type_text(type)) return {};
    return Error{ErrorCode::kUnsupported,
                 "table " + database + "." + std::string(table.name) + " has " +
                     (column == found.end() ? "no column " + std::string(name)
                                            : "column " + std::string(name) + " as " + column->second +
                                                  ", not " + std::string(type_text(type))) +
                     ": another version of Lockstep made it; name another database in the URL",
                 {}};
  };
  for (const Column& column : table.columns) LOCKSTEP_TRY(check(column.name, column.type));
  return check("version", ColumnType::kUInt64);
}

Result<FoundTables> read_columns(Client& client, const std::string& database) {
  LOCKSTEP_ASSIGN(
      const Rows rows,
      client.select("SELECT table, name, type FROM system.columns WHERE database = " + literal(database), 3));
  FoundTables found;
  for (const auto& row : rows) found[row[0]][row[1]] = row[2];
  return found;
}

// Adds what an earlier schema did not have. The answer may have been lost, or another pusher may have been
// faster: that it is there is what counts.
Result<void> migrate(Client& client, const std::string& database, const Table& table, FoundColumns& found) {
  std::optional<Error> refused;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    // Columns of the first schema are never added: a table without them is somebody else's.
    if (schema_of(table, column) == 0 || found.contains(std::string(column.name))) continue;
    if (const auto added = client.execute(add_column_sql(database, table, i)); !added)
      refused = added.error();
    // Asked anew: an error does not say whether the column is there.
    LOCKSTEP_ASSIGN(FoundTables now, read_columns(client, database));
    found = now[std::string(table.name)];
    if (refused && !found.contains(std::string(column.name))) return *refused;
  }
  return check_columns(found, table, database);
}

}  // namespace

Result<void> make_tables(Client& client, const std::string& database, TableId first, TableId last) {
  LOCKSTEP_ASSIGN(FoundTables found, read_columns(client, database));
  // Only where nothing was found: a user who may write tables need not be allowed to make databases.
  if (found.empty()) LOCKSTEP_TRY(client.execute("CREATE DATABASE IF NOT EXISTS " + identifier(database)));
  for (size_t i = number(first); i <= number(last); ++i) {
    const Table& of = table(static_cast<TableId>(i));
    const auto there = found.find(std::string(of.name));
    if (there != found.end())
      LOCKSTEP_TRY(migrate(client, database, of, there->second));
    else
      LOCKSTEP_TRY(client.execute(create_table_sql(database, of, client.version())));
  }
  return {};
}

Result<void> check_tables(Client& client, const std::string& database, TableId first, TableId last) {
  LOCKSTEP_ASSIGN(FoundTables found, read_columns(client, database));
  for (size_t i = number(first); i <= number(last); ++i) {
    const Table& of = table(static_cast<TableId>(i));
    if (!found.contains(std::string(of.name)))
      return Error{ErrorCode::kUnsupported,
                   "database " + database + " has no table " + std::string(of.name) +
                       ": push a run to it, or name another in the URL",
                   {}};
    LOCKSTEP_TRY(check_columns(found[std::string(of.name)], of, database));
  }
  return {};
}

}  // namespace lockstep::store::clickhouse
