// SPDX-License-Identifier: Apache-2.0
// The order is what makes it safe to end at any moment: tables, marks, then each batch and its mark, the run
// itself last, and at the end the counts.
#include <map>

#include "store/clickhouse/batches.h"
#include "store/clickhouse/run_rows.h"
#include "store/clickhouse/wire/sql_text.h"
#include "store/fleet.h"

namespace lockstep::store {
namespace {

using namespace clickhouse;

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
    if (schema_of(table, column) == 0 || found.contains(std::string(column.name))) continue;
    if (const auto added = client.execute(add_column_sql(database, table, i)); !added)
      refused = added.error();
    LOCKSTEP_ASSIGN(FoundTables now, read_columns(client, database));
    found = now[std::string(table.name)];
    if (refused && !found.contains(std::string(column.name))) return *refused;
  }
  return check_columns(found, table, database);
}

// Makes what is missing. Who may not make tables can push into those that are there.
Result<void> make_tables(Client& client, const std::string& database) {
  LOCKSTEP_ASSIGN(FoundTables found, read_columns(client, database));
  if (found.empty()) LOCKSTEP_TRY(client.execute("CREATE DATABASE IF NOT EXISTS " + identifier(database)));
  for (size_t i = 0; i < kTables; ++i) {
    const Table& of = table(static_cast<TableId>(i));
    const auto there = found.find(std::string(of.name));
    if (there != found.end())
      LOCKSTEP_TRY(migrate(client, database, of, there->second));
    else
      LOCKSTEP_TRY(client.execute(create_table_sql(database, of, client.version())));
  }
  return {};
}

}  // namespace

Result<void> check_target(const FleetTarget& target) {
  LOCKSTEP_ASSIGN(const Address address, parse_address(target.url));
  if (has_control(target.key)) return Error{ErrorCode::kUsage, "the key has control characters", {}};
  auto library = curl::load();
  if (!library) return library.error();
  return {};
}

Result<PushResult> push(const FleetRun& run, const FleetTarget& target,
                        const std::function<void(double fraction)>& progress) {
  LOCKSTEP_TRY(check_target(target));
  LOCKSTEP_ASSIGN(Address address, parse_address(target.url));
  if (!target.key.empty()) address.key = target.key;
  if (run.job == nullptr || run.job->processes.empty())
    return Error{ErrorCode::kInvalidInput, "the run has no process", run.name};
  LOCKSTEP_ASSIGN(Client client, Client::open(address, {.patience = target.patience}));
  LOCKSTEP_TRY(make_tables(client, address.database));
  const RunRows rows(run);
  Batches batches(client, address.database, rows.run(), rows.day(), {});
  LOCKSTEP_TRY(batches.read_marks());
  LOCKSTEP_TRY(rows.send(batches, progress));
  PushResult result;
  result.run = rows.run();
  result.database = address.database;
  for (size_t i = 0; i < number(TableId::kBatches); ++i) {
    LOCKSTEP_ASSIGN(std::string difference, batches.compare(static_cast<TableId>(i)));
    if (!difference.empty()) result.differences.push_back(std::move(difference));
  }
  result.rows = batches.rows();
  result.sent_rows = batches.sent_rows();
  result.batches = batches.batches();
  result.sent_batches = batches.sent_batches();
  result.sent_bytes = batches.sent_bytes();
  return result;
}

}  // namespace lockstep::store
