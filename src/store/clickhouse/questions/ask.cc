// SPDX-License-Identifier: Apache-2.0
// Asks the store one of the questions in questions.cc. It only reads and has limits in time and rows, since
// the server belongs to others. The store may be of any version and filled by anybody. So its tables are
// looked at first, and numbers are checked to be numbers before they are shown.
#include <charconv>

#include "store/clickhouse/wire/client.h"
#include "store/clickhouse/wire/sql_text.h"
#include "store/fleet_questions.h"

namespace lockstep::store {
namespace {

using namespace clickhouse;

// "nan" and "inf" are numbers to from_chars and to the server.
bool is_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Result<void> check_cells(const FleetQuestion& question, const Rows& rows) {
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (question.columns[i].kind == FleetColumn::Kind::kText || is_number(row[i])) continue;
      return Error{ErrorCode::kUnsupported,
                   "the store answers with no number for " + std::string(question.columns[i].name),
                   {}};
    }
  }
  return {};
}

// A store without a table, or with that of the first schema, would answer in terms of its own.
Result<void> check_tables(Client& client, const std::string& database) {
  LOCKSTEP_ASSIGN(
      const Rows rows,
      client.select("SELECT count() FROM system.columns WHERE database = " + literal(database) +
                        " AND ((table = 'rollups' AND name = 'run') OR (table = 'runs' AND name = 'schema'))",
                    1));
  if (rows.size() == 1 && rows[0][0] == "2") return {};
  return Error{
      ErrorCode::kUnsupported,
      "database " + database +
          " has no runs, or only those of an earlier Lockstep: push a run to it, or name another in the URL",
      {}};
}

}  // namespace

Result<std::string> fleet_database(const std::string& url) {
  LOCKSTEP_ASSIGN(const Address address, parse_address(url));
  return address.database;
}

Result<FleetAnswer> ask_fleet(const FleetQuestion& question, const FleetTarget& target,
                              const FleetSubject& subject) {
  constexpr std::chrono::seconds kLongest{120};
  LOCKSTEP_TRY(check_target(target));
  LOCKSTEP_ASSIGN(Address address, parse_address(target.url));
  if (!target.key.empty()) address.key = target.key;
  ClientLimits limits{.patience = target.patience,
                      .settings = "max_execution_time=" + std::to_string(kLongest.count()) + "&readonly=1"};
  // The server sends nothing while it thinks: the connection must wait longer than the statement may take.
  limits.http.whole = limits.http.stall = kLongest + std::chrono::seconds(10);
  LOCKSTEP_ASSIGN(Client client, Client::open(address, limits));
  LOCKSTEP_TRY(check_tables(client, address.database));
  FleetAnswer answer;
  answer.database = address.database;
  LOCKSTEP_ASSIGN(answer.rows,
                  client.select(fleet_sql(question, address.database, subject), question.columns.size()));
  LOCKSTEP_TRY(check_cells(question, answer.rows));
  // The SQL asks for one row more than is shown (fleet_sql), which tells whether there are more.
  answer.is_cut = answer.rows.size() > kMostFleetRows;
  if (answer.is_cut) answer.rows.resize(kMostFleetRows);
  if (!question.reads_rollups) return answer;
  LOCKSTEP_ASSIGN(const Rows old, client.select("SELECT count() FROM " + identifier(address.database) +
                                                    ".runs FINAL WHERE schema = 0 AND day >= today() - " +
                                                    std::to_string(subject.days),
                                                1));
  // Runs of the first schema have no rollups: without this count they would seem to be healthy.
  answer.without_rollups = old.size() == 1 ? parse_number(old[0][0]).value_or(0) : 0;
  return answer;
}

}  // namespace lockstep::store
